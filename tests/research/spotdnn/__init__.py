"""spotDNN (IWQoS 2023): its quota problem with our throughput model."""
