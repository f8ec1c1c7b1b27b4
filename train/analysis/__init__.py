"""What a finished or running training teaches: figures and tables over several runs."""
