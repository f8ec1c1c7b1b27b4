"""One rule per file: pure functions from gold and answer to a `Score`."""
