"""Who decides: protocol, episodes, policies, runner, trajectories."""
