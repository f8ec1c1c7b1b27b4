"""What a training run needs and takes, from configuration alone (`maestro train plan`)."""
