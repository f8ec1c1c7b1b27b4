"""GRPO through verl: write the settings, start the job, follow it, bring the policy home.

One idea: verl runs as a process of its own, started from a list of overrides that anybody could type; this file only
prepares its files, watches what it appends, and ends it cleanly whatever happens.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml

from registry.errors import UserFault
from registry.registry import default_registry_path
from train import checkpoints, processes
from train.best_policy import keep_best
from train.collapse import alarms
from train.config import TrainConfig
from train.curves import draw_curves
from train.disk import ran_full
from train.launch.cluster import joining, own_folder
from train.outage import forget_pauses
from train.paths import RunPaths
from train.resume import source_of, step_of
from train.termination import SaveNow, Terminated, Termination, forget_request
from train.trackers import open_trackers
from train.verl_config import AGENT, environment, overrides, verl_settings
from train.watch import ExpertsDown, Follower, PauseWatch, last_lines

START_SECONDS = 600.0  # from start to the first step, model loading on a GPU node included
SILENT_SECONDS = 1800.0  # longest time between two steps before the job counts as hung


class TrainingFailed(RuntimeError):
    """The job ended before its last step. The message holds the end of its log."""


class TrainingCollapsed(RuntimeError):
    """A fatal alarm was raised and the run was asked to stop on one."""


def run_grpo(
    config: TrainConfig,
    paths: RunPaths,
    model: Path,
    *,
    on_step: Callable[[dict[str, Any]], None],
    on_alarm: Callable[[str], None],
    stop_on_collapse: bool = False,
    termination: Termination | None = None,
) -> int:
    """Train from `model` (or the newest checkpoint) to `config.grpo.steps` and write `paths.policy`.

    Returns the number of steps that this call ran. Raises TrainingFailed with the end of verl's log, UserFault where
    something is wrong with what the user gave, or Terminated where `termination` was asked to end.
    """
    processes.stop(paths.root)  # what a killed run left behind
    if config.resume == "never":
        for folder in (paths.checkpoints, paths.best):
            shutil.rmtree(folder, ignore_errors=True)
    paths.checkpoints.mkdir(parents=True, exist_ok=True)
    forget_request(paths.checkpoints)
    done = checkpoints.repair_tracker(paths.checkpoints)
    source = source_of(config, paths)
    if source is not None:
        done = step_of(source)
    ran = 0
    if done < config.grpo.steps:
        ran = _run_job(config, paths, model, done, on_step, on_alarm, stop_on_collapse, termination or Termination())
        done = checkpoints.repair_tracker(paths.checkpoints)
    if done < config.grpo.steps:
        raise TrainingFailed(f"the job ended at step {done} of {config.grpo.steps}")
    checkpoints.export(paths.checkpoints, done, paths.policy, model)
    return ran


def _run_job(
    config: TrainConfig,
    paths: RunPaths,
    model: Path,
    done: int,
    on_step: Callable[[dict[str, Any]], None],
    on_alarm: Callable[[str], None],
    stop_on_collapse: bool,
    termination: Termination,
) -> int:
    attempt = 1 + len(list((paths.root / "logs").glob("verl-*.log")))
    write_job_files(config, paths, attempt)
    log = paths.verl_log(attempt)
    follower = Follower(paths, attempt, done + 1)
    writer = open_trackers(config, paths, on_alarm)
    forget_pauses(paths.pauses)
    pauses = PauseWatch(paths.pauses, on_alarm)
    command, env = job_command(config, paths, model, attempt)
    ray_folder = own_folder(config)
    if ray_folder is not None:
        env |= {"RAY_TMPDIR": str(ray_folder)}
    job = processes.start(command, env, log, paths.root)
    told: set[str] = set()
    ran, heard = 0, time.monotonic()
    saving: SaveNow | None = None
    hold = ExitStack()
    hold.enter_context(termination.held())
    try:
        while True:
            finished = job.poll() is not None
            for record in follower.poll():
                ran, heard = ran + 1, time.monotonic()
                writer.write(record)
                on_step(record)
                _keep(config, paths, model, record, follower.history, on_alarm)
                bounds = {"max_gap": config.grpo.max_gap, "given_up_above": config.watch.given_up_above}
                for alarm in alarms(follower.history, **bounds):
                    if alarm.name not in told:
                        told.add(alarm.name)
                        on_alarm(f"{alarm.name}: {alarm.text}")
                    if alarm.fatal and stop_on_collapse:
                        raise TrainingCollapsed(alarm.text)
                if record["step"] % 10 == 0:
                    draw_curves(follower.history, paths.curves, f"GRPO: {config.name}, seed {config.seed}")
            if pauses.poll():
                heard = time.monotonic()  # a pause has its own limit
            if termination.asked and saving is None:
                saving = SaveNow(paths.checkpoints, config.checkpoint.grace)
                on_alarm(f"SIGTERM: the step under way has {config.checkpoint.grace:.0f} s to end and be saved")
            if finished or (saving is not None and saving.over(follower.history[-1]["step"] if ran else 0)):
                break
            limit = SILENT_SECONDS if ran else START_SECONDS
            if time.monotonic() - heard > limit:
                raise TrainingFailed(f"no step for {limit:.0f} s; the job was ended. End of {log}:\n{last_lines(log)}")
            time.sleep(0.25)
    except ExpertsDown as error:
        kept = checkpoints.repair_tracker(paths.checkpoints)
        raise UserFault(
            f"{error}; the job was ended",
            where=str(paths.root),
            fix=f"bring the experts back, then run the same command: it goes on from the checkpoint of step {kept}",
        ) from error
    finally:
        writer.close()
        processes.stop(paths.root)
        if ray_folder is not None:
            shutil.rmtree(ray_folder, ignore_errors=True)
        if follower.history:
            draw_curves(follower.history, paths.curves, f"GRPO: {config.name}, seed {config.seed}")
        hold.close()
    if termination.asked:
        raise Terminated
    if job.returncode != 0:
        text = last_lines(log)
        if ran_full(log, paths.root):
            raise UserFault(
                "the disk is full", where=str(paths.root), fix="free some space, then run the same command: it goes on"
            )
        raise TrainingFailed(f"verl ended with code {job.returncode}. End of {log}:\n{text}")
    return ran


def _keep(
    config: TrainConfig,
    paths: RunPaths,
    model: Path,
    record: dict[str, Any],
    history: list[dict[str, Any]],
    tell: Callable[[str], None],
) -> None:
    """After a step: the best policy and the last checkpoints are kept. What hinders it is told and ends nothing."""
    try:
        keep_best(record, history, config.checkpoint, paths, model)
        checkpoints.keep_last(paths.checkpoints, config.checkpoint.keep)
    except OSError as error:
        tell(f"the policy of step {record['step']} is not kept as the best: {error}")


def job_command(config: TrainConfig, paths: RunPaths, model: Path, attempt: int) -> tuple[list[str], dict[str, str]]:
    """verl's command line and what its environment has beyond ours."""
    env = environment(config, paths, attempt)
    settings = verl_settings(config, paths, model) | joining(config, env)
    return [sys.executable, "-m", "verl.trainer.main_ppo", *overrides(settings)], env


def _anywhere(registry: str) -> str:
    """A path as seen from any folder; the name of a shipped registry stays a name."""
    path = Path(registry)
    return str(path.resolve()) if path.exists() else registry


def write_job_files(config: TrainConfig, paths: RunPaths, attempt: int) -> None:
    """The two files that the agent loop reads in verl's processes."""
    settings = {
        "registry": [_anywhere(path) for path in config.registry] or [str(default_registry_path())],
        "endpoints": None if config.endpoints is None else str(config.endpoints.resolve()),
        "cache": str(paths.cache),
        "rollouts": str(paths.rollouts),
        "attempt": attempt,
        "seed": config.seed,
        "prompt_style": config.protocol.prompt_style,
        "budget": {
            "horizon": config.protocol.horizon,
            "max_prompt_tokens": config.protocol.max_prompt_tokens,
            "max_turn_tokens": config.protocol.max_turn_tokens,
            "max_observation_tokens": config.protocol.max_observation_tokens,
            "max_trajectory_tokens": config.protocol.max_trajectory_tokens,
            "malformed_turns": config.protocol.malformed_turns,
        },
        "reward": config.reward.model_dump(),
        "observations": config.protocol.observations,
        "episode_seconds": config.protocol.episode_seconds,
        "turn_seconds": config.protocol.turn_seconds,
        "pauses": str(paths.pauses),
        "pause_above": config.watch.pause_above,
        "pause_seconds": config.watch.pause_seconds,
        "probe_seconds": config.watch.probe_seconds,
        "image_roots": sorted(
            {str(Path(file).resolve().parent) for file in (*config.data.train_files, *config.data.validation_files)}
        ),
    }
    paths.rollout_settings.parent.mkdir(parents=True, exist_ok=True)
    paths.rollout_settings.write_text(json.dumps(settings, indent=2), encoding="utf-8")
    loops = [
        {
            "name": AGENT,
            "_target_": "train.agent_loop.OrchestratorAgentLoop",
            "settings_path": str(paths.rollout_settings),
        }
    ]
    paths.agent_loops.write_text(yaml.safe_dump(loops), encoding="utf-8")
