"""`python -m bench.receiver`: answers webhooks with 204 in a process of its own, and prints its port."""

import asyncio

from aiohttp import web


async def _serve() -> None:
    async def accept(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(status=204)

    app = web.Application()
    app.router.add_post("/hook", accept)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve())
