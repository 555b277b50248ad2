"""Buckets for checkpoints, by the clouds' own command-line tools."""

from recommender.export.description import RunDescription

_PROGRESS = {
    "aws": 'aws s3 cp --quiet "s3://$CHECKPOINT_BUCKET/$NAME/progress" - 2> /dev/null',
    "gcp": 'gcloud storage cat "gs://$CHECKPOINT_BUCKET/$NAME/progress" 2> /dev/null',
    "azure": (
        'az storage blob download --container-name "$CHECKPOINT_BUCKET" '
        '--name "$NAME/progress" --no-progress --only-show-errors 2> /dev/null'
    ),
}


def progress_line(run: RunDescription) -> str:
    """Print the file of the bucket in which the training script notes how much is done."""
    return _PROGRESS[run.machines.provider]
