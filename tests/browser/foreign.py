"""A server of other pages, on another port of loopback, which the visitor opens as well."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

#: All that a page can have a browser send, to ``place`` and ``path``, with the cookies that it would add: the answers
#: that the page could read.
ATTACK = """async ({place, path, action}) => {
    const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
    const read = [];
    const body = JSON.stringify(action);
    const note = async (how, asked) => {
        try {
            const answer = await asked();
            const text = await answer.text();
            if (text) read.push(`${how}: ${text}`);
        } catch {
            // It may not be read.
        }
    };
    const post = (mode, kind) => () => fetch(`${place}/-/actions/${path}`, {
        method: "POST", mode, credentials: "include", headers: {"Content-Type": kind}, body,
    });
    await note("fetch", post("cors", "application/json"));
    await note("fetch without preflight", post("cors", "text/plain"));
    await note("fetch without reading", post("no-cors", "text/plain"));
    await note("fetch of the rights", () => fetch(`${place}/-/rights/${path}`, {credentials: "include"}));
    await note("fetch of the page", () => fetch(`${place}/${path}`, {mode: "no-cors", credentials: "include"}));
    navigator.sendBeacon(`${place}/-/actions/${path}`, new Blob([body], {type: "text/plain"}));

    // A form whose field makes its body a JSON object.
    const target = document.createElement("iframe");
    target.name = "target";
    const form = document.createElement("form");
    const address = `${place}/-/actions/${path}`;
    Object.assign(form, {method: "POST", enctype: "text/plain", action: address, target: "target"});
    const field = document.createElement("input");
    field.name = body.slice(0, -1) + ',"ignored":"';
    field.value = '"}';
    form.append(field);
    document.body.append(target, form);
    form.submit();

    const frame = document.createElement("iframe");
    frame.src = `${place}/${path}`;
    const image = document.createElement("img");
    image.onload = () => read.push("an image");
    image.src = `${place}/-/files/icon.svg`;
    const script = document.createElement("script");
    script.onload = () => read.push("a script");
    script.src = `${place}/-/files/app.js`;
    const style = document.createElement("link");
    style.rel = "stylesheet";
    style.onload = () => read.push("a stylesheet");
    style.href = `${place}/-/files/style.css`;
    document.body.append(frame, image, script, style);
    for (const stream of [`${place}/-/stream/list`, `${place}/-/stream/release/${path}`]) {
        const events = new EventSource(stream, {withCredentials: true});
        for (const kind of ["hello", "rows", "release"]) {
            events.addEventListener(kind, (event) => read.push(`a stream: ${event.data}`));
        }
    }
    await wait(1000);
    try {
        if (frame.contentDocument?.body?.innerText) read.push(`a frame: ${frame.contentDocument.body.innerText}`);
    } catch {
        // It is another origin's.
    }
    return read;
}"""


@asynccontextmanager
async def foreign_pages() -> AsyncIterator[int]:
    """The port of a server whose pages are empty."""

    async def empty(_: web.Request) -> web.Response:
        return web.Response(text="<!doctype html><title>A page</title><body></body>", content_type="text/html")

    application = web.Application()
    application.router.add_get("/{path:.*}", empty)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
