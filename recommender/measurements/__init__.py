"""What users measured with `recommend bench`: kept, pooled, and put in place of shipped speeds."""
