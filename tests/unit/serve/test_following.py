"""What happens while requests are executed, for those who follow them."""

import asyncio

from strandline.app.watching import Waited
from strandline.serve.following import Followings


def test_a_request_that_is_followed_is_not_forgotten_however_many_wait_beside_it() -> None:
    followings = Followings()

    async def story() -> list[object]:
        async def follow() -> list[object]:
            return [happening async for happening in followings.get("mine").follow()]

        mine = asyncio.create_task(follow())
        await asyncio.sleep(0)
        for number in range(1_000):
            followings.get(f"other-{number}")
        followings.get("mine").add(Waited(holder="process 1"))
        followings.get("mine").end("done")
        return await asyncio.wait_for(mine, 10)

    assert asyncio.run(story()) == [Waited(holder="process 1")]
    assert len(followings._by_request) <= 401
