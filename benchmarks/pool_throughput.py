"""How many delegations a second the pool carries out, what one costs, and where that time goes.

    python benchmarks/pool_throughput.py                                  # 5,000 calls, 256 at once, 500 ms each
    python benchmarks/pool_throughput.py --calls 1000 --delay-ms 100      # quicker

Three measurements side by side against one local stub (its own process, see expert_stub.py):

- pool: `ExpertPool.delegate`, `--concurrency` at once, each with a picture; the ideal is concurrency / delay;
- threads: 24 workers, each with the plain blocking `openai` client, a share of the calls (its rate does not change);
- one at a time: pool calls to a stub that answers at once, so that all the time is the pool's, the loop's and the
  stub's; `bare` is the same exchange over a plain socket, which no client can beat. The profile is of these calls.

One JSON object on standard output; `held` says whether the pool reached 85 % of the ideal rate and 8 times that of the
threads, and added less than 4 ms to a call at the median. Run it where nothing else runs.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import pstats
import re
import socket
import statistics
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from expert_stub import Stub, registry_for, running
from PIL import Image, ImageDraw

from experts.images import Picture, load_picture
from experts.outcome import Outcome
from experts.pool import ExpertPool

WORKERS = 24
SHARE_OF_IDEAL, TIMES_THREADS, ADDED_MS = 0.85, 8.0, 4.0
_PACKAGE = re.compile(r".*site-packages/(\w+)|.*/(experts|registry)/|.*lib/python[\d.]+/(\w+)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--concurrency", type=int, default=256)
    parser.add_argument("--delay-ms", type=float, default=500.0)
    parser.add_argument("--thread-calls", type=int, default=480)
    parser.add_argument("--single-calls", type=int, default=400)
    args = parser.parse_args()
    pictures = [picture(number) for number in range(32)]
    with running(delay_ms=args.delay_ms) as stub:
        pool = asyncio.run(measure_pool(stub, pictures, args.calls, args.concurrency))
        threads = measure_threads(stub, pictures, args.thread_calls)
    with running(delay_ms=0) as stub:
        single = asyncio.run(measure_single(stub, pictures, args.single_calls))
    ideal = args.concurrency / (args.delay_ms / 1000)
    report = {
        "calls": args.calls,
        "concurrency": args.concurrency,
        "delay_ms": args.delay_ms,
        "picture_bytes": statistics.median(len(one.png) for one in pictures),
        "pool": pool | {"share_of_ideal": pool["rate_per_s"] / ideal, "ideal_per_s": ideal},
        "threads": threads | {"workers": WORKERS},
        "times_threads": pool["rate_per_s"] / threads["rate_per_s"],
        "one_at_a_time": single,
    }
    report["held"] = (
        report["pool"]["share_of_ideal"] >= SHARE_OF_IDEAL
        and report["times_threads"] >= TIMES_THREADS
        and single["added_ms_p50"] < ADDED_MS
    )
    print(json.dumps(rounded(report), indent=2))


def picture(number: int) -> Picture:
    """A picture of a common size (300 x 200, about 30 kilobytes), another one for each number."""
    image = Image.new("RGB", (300, 200), (250, 250, 250))
    image.paste(Image.effect_noise((130, 90), 40), (0, 0))
    draw = ImageDraw.Draw(image)
    for bar in range(8):
        height = (37 * number + 53 * bar) % 180
        draw.rectangle((10 + 36 * bar, 190 - height, 20 + 36 * bar, 190), fill=(20 * bar, 90, 200))
    return load_picture(image)


async def measure_pool(stub: Stub, pictures: list[Picture], calls: int, concurrency: int) -> dict[str, Any]:
    """`calls` delegations, `concurrency` at once; all must end well, each with the answer to its own question."""
    registry = registry_for(stub.urls, max_concurrency=concurrency, timeout_s=60)
    async with ExpertPool(registry) as pool:
        await pool.prepare()
        numbers = iter(range(calls))
        right = 0

        async def worker() -> None:
            nonlocal right
            for number in numbers:
                question = f"How many? #{number}#"
                done = await pool.delegate("Stub", "Counting", question, (pictures[number % len(pictures)],))
                right += done.outcome is Outcome.OK and done.text == str(number)

        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(worker() for _ in range(concurrency)))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        status = pool.status()["experts"]["Stub"]
    if right != calls:
        raise SystemExit(f"{calls - right} of {calls} calls went wrong: {status['outcomes']}")
    return {
        "seconds": wall,
        "rate_per_s": calls / wall,
        "cpu_ms_per_call": cpu / calls * 1000,
        "latency_s": status["latency_s"],
    }


def measure_threads(stub: Stub, pictures: list[Picture], calls: int) -> dict[str, Any]:
    """The same questions, as a thread pool with the blocking client asks them."""
    import openai

    client = openai.OpenAI(base_url=stub.urls[0], api_key="none", max_retries=0)

    def ask(number: int) -> bool:
        url = pictures[number % len(pictures)].data_url()
        words = {"type": "text", "text": f"How many? #{number}#"}
        reply = client.chat.completions.create(
            model="stub",
            messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}, words]}],  # type: ignore[list-item]
            temperature=0,
            max_tokens=512,
        )
        return reply.choices[0].message.content == str(number)

    with ThreadPoolExecutor(WORKERS) as workers:
        list(workers.map(ask, range(WORKERS)))  # connections and imports are not what is measured
        wall, cpu = time.perf_counter(), time.process_time()
        right = sum(workers.map(ask, range(calls)))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    client.close()
    if right != calls:
        raise SystemExit(f"{calls - right} of {calls} calls of the thread pool went wrong")
    return {
        "calls": calls,
        "seconds": wall,
        "rate_per_s": calls / wall,
        "cpu_ms_per_call": cpu / calls * 1000,
    }


async def measure_single(stub: Stub, pictures: list[Picture], calls: int) -> dict[str, Any]:
    """One call after the other: milliseconds for each, and the share of each package in a profile."""
    async with ExpertPool(registry_for(stub.urls)) as pool:
        await pool.prepare()

        async def ask(number: int) -> float:
            start = time.perf_counter()
            await pool.delegate("Stub", "Counting", f"How many? #{number}#", (pictures[number % len(pictures)],))
            return (time.perf_counter() - start) * 1000

        for number in range(50):
            await ask(number)
        cpu = time.process_time()
        times = sorted([await ask(number) for number in range(calls)])
        cpu = time.process_time() - cpu
        profile = cProfile.Profile()
        with profile:
            for number in range(calls):
                await ask(number)
    bare = bare_times(stub, pictures[0], calls)
    return {
        "calls": calls,
        "added_ms_p50": statistics.median(times),
        "added_ms_p95": times[int(0.95 * len(times))],
        "bare_ms_p50": statistics.median(bare),
        "cpu_ms_per_call": cpu / calls * 1000,
        "profile_share": shares(profile),
    }


def bare_times(stub: Stub, seen: Picture, calls: int) -> list[float]:
    """Milliseconds of the same exchange over one plain socket."""
    place = urlsplit(stub.urls[0])
    body = json.dumps({"picture": seen.data_url(), "text": "How many? #7#"}).encode()
    request = b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    times = []
    with socket.create_connection((place.hostname, place.port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(calls):
            start = time.perf_counter()
            connection.sendall(request)
            received = b""
            while not received.endswith(b"}}"):
                received += connection.recv(65536)
            times.append((time.perf_counter() - start) * 1000)
    return times


def shares(profile: cProfile.Profile) -> dict[str, float]:
    """The share of the profiled time that each package takes, its calls into the interpreter's own functions included,
    greatest first; `waiting` is the time in which the loop had nothing to do."""
    own: defaultdict[str, float] = defaultdict(float)
    for (file, _, name), (*_, seconds, _, callers) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        if "poll" in name and "select" in name:
            own["waiting"] += seconds
        elif file != "~":
            own[package(file)] += seconds
        else:
            for (caller, _, _), (*_, part, _) in callers.items():
                own[package(caller)] += part
    total = sum(own.values())
    return {name: time / total for name, time in sorted(own.items(), key=lambda pair: -pair[1])[:12]}


def package(file: str) -> str:
    """The package that a file belongs to."""
    found = _PACKAGE.match(file)
    return next(part for part in found.groups() if part) if found else "other"


def rounded(value: Any) -> Any:
    """The same data with numbers that can be read."""
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    return round(value, 3) if isinstance(value, float) else value


if __name__ == "__main__":
    main()
