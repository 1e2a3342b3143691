"""If an agent is killed at any moment of a start, the next one starts the run once, or finds it running."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from subdeck.core.hosts.protocol import Said, Start, encode

from tests.core.hosts.hosting import Asking, host_meta, hosting
from tests.factories import write_settings

pytestmark = pytest.mark.processes

KILLED = """
import asyncio, sys
from subdeck.core.hosts._host_agent import HostAgent
from subdeck.core.hosts.protocol import Verb

async def main():
    agent = HostAgent(sys.argv[1], slots=4)
    print("ready", flush=True)
    running = asyncio.get_running_loop().create_task(agent.run())
    await agent.answer(Verb.START, sys.stdin.buffer.read())
    await asyncio.sleep(60)

asyncio.run(main())
"""
TRIALS = 8


async def test_a_start_that_is_cut_off(tmp_path: Path) -> None:
    """Whenever the agent is killed, asking again makes one agent process, whose result is reported."""
    write_settings()
    seed = random.randrange(10**6)
    moments = random.Random(seed)
    async with hosting(tmp_path / "spool") as agent:
        spool_id = agent.spool_id
    for trial in range(TRIALS):
        meta, relay = host_meta(), None
        starts = tmp_path / f"starts-{trial}"
        script = f"bash echo x >> {starts}\nanswer {trial}"
        start = Start(
            relay="0123456789ab",
            run=meta.run_id,
            spool=spool_id,
            meta=msgspec.json.encode(meta),
            prompt=script.encode(),
        )
        command = (sys.executable, "-P", "-c", KILLED, str(tmp_path / "spool"))
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as killed:
            assert killed.stdin and killed.stdout
            killed.stdout.readline()
            killed.stdin.write(encode(start))
            killed.stdin.close()
            await asyncio.sleep(moments.random() * 0.25)
            killed.send_signal(signal.SIGKILL)
        async with hosting(tmp_path / "spool") as agent:
            relay = Asking(agent)
            relay.files[meta.run_id] = {}
            if meta.run_id not in (await relay.pull(wait=0)).known:
                _, answer = await relay.start(script, meta=meta)
                assert Said.KNOWN == answer.said, f"trial {trial} of seed {seed}: {answer.why}"
            result = await relay.pull_end(meta.run_id)
        begun = starts.read_text() if starts.exists() else ""
        assert (str(trial), "x\n") == (result.final_text, begun), f"trial {trial} of seed {seed}: {result}"
