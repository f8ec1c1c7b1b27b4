"""`Supervisor`: all servers of one launch, and the endpoints file that follows what answers.

The one idea: servers look after themselves; this only tells the file, and ends them in order: first nobody is sent
there any more, then what runs is answered, then the processes go.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from experts.serving.endpoints_file import EndpointsFile
from experts.serving.launch import Launch
from experts.serving.probe import Probe
from experts.serving.process import clear_leftovers
from experts.serving.server import Rules, Server, State
from registry.errors import UserFault


class Supervisor:
    """Runs `launches`. endpoints: held by the caller. logs: a folder for one file a server.

    say: gets lines for people.
    """

    def __init__(
        self,
        launches: Sequence[Launch],
        endpoints: EndpointsFile,
        *,
        logs: Path,
        rules: Rules | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.rules = rules or Rules()
        self._endpoints, self._say = endpoints, say
        self._probe = Probe()
        self._published: dict[str, tuple[str, ...]] | None = None
        self._stopping = False
        self._news = asyncio.Event()
        turns = {device: asyncio.Lock() for launch in launches for device in launch.devices}
        ports: set[int] = set()
        self.servers = [
            Server(
                launch,
                rules=self.rules,
                probe=self._probe,
                log=logs / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', launch.name)}.log",
                mark=endpoints.mark,
                turns=turns,
                ports=ports,
                say=say,
                changed=self._publish,
            )
            for launch in launches
        ]

    async def run(self, stop: asyncio.Event, hurry: asyncio.Event, on_settled: Callable[[], None]) -> None:
        """Serve until `stop`; `hurry` cuts the waiting short. `on_settled` is called once, when every server
        answers or is given up. Raises UserFault when all of them are given up."""
        self._publish()  # addresses of an earlier launch lead nowhere now
        found = await asyncio.to_thread(clear_leftovers, self._endpoints.mark)
        if found:
            self._say(f"ended {found} processes that a killed launcher had left behind")
        tasks = [asyncio.create_task(server.run()) for server in self.servers]
        waiting = asyncio.create_task(stop.wait())
        settled = False
        try:
            while not stop.is_set():
                self._news.clear()
                if not settled and all(server.state in (State.READY, State.FAILED) for server in self.servers):
                    settled = True
                    if any(server.state is State.READY for server in self.servers):
                        on_settled()
                if all(task.done() for task in tasks) or any(task.done() and task.exception() for task in tasks):
                    break
                news = asyncio.create_task(self._news.wait())
                await asyncio.wait([waiting, news, *(t for t in tasks if not t.done())], return_when="FIRST_COMPLETED")
                news.cancel()
        finally:
            waiting.cancel()
            await self._end(tasks, hurry)
            await self._probe.aclose()
        for task in tasks:
            if not task.cancelled():
                task.result()  # a fault of ours must not pass for a server's
        if not stop.is_set():
            reasons = "\n".join(f"  {server.launch.name}: {server.reason}" for server in self.servers)
            raise UserFault(f"no server is left:\n{reasons}", where=f"logs in {self.servers[0].log.parent}")

    def _publish(self) -> None:
        self._news.set()
        urls: dict[str, tuple[str, ...]] = {}
        for server in self.servers:
            if server.state is State.READY and not self._stopping:
                for model in server.launch.models:
                    urls[model.id] = (*urls.get(model.id, ()), f"{server.base}/v1")
        if urls != self._published:
            models = {model.id: model for server in self.servers for model in server.launch.models}
            self._endpoints.write(models.values(), urls)
            self._published = urls

    async def _end(self, tasks: Sequence[asyncio.Task[None]], hurry: asyncio.Event) -> None:
        self._stopping = True
        self._publish()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        hurried = asyncio.create_task(hurry.wait())
        draining = asyncio.gather(*(server.drain() for server in self.servers))
        await asyncio.wait([hurried, draining], return_when=asyncio.FIRST_COMPLETED)
        draining.cancel()
        ending = asyncio.gather(*(server.end() for server in self.servers))
        await asyncio.wait([hurried, ending], return_when=asyncio.FIRST_COMPLETED)
        if not ending.done():
            for server in self.servers:
                if server.process is not None:
                    server.process.kill()
        hurried.cancel()
        await asyncio.gather(hurried, draining, ending, return_exceptions=True)
        await asyncio.to_thread(clear_leftovers, self._endpoints.mark, 0.5)  # what was killed in a hurry left some
