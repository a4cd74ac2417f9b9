"""Names and messages are text, whatever is in them."""

from __future__ import annotations

from typing import Any

import pytest

from rollout_lws.cli.demo.manifests import NAME, NAMESPACE
from rollout_lws.objects.resources import CORE_EVENTS, LEADER_WORKER_SETS, LWS_NAME, PODS
from rollout_lws.sandbox.behaviours.faults import CUT_OFF, PREFIX
from tests.browser.stage import ROLLOUTS, Stage
from tests.browser.tabs import NOT_ANSWERED, Tab, Visitors

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

_MARKUP = '<img src=x onerror="window.harmed=1"><script>window.harmed=2</script><svg onload="window.harmed=3">'
_QUOTES = '"><a href="javascript:window.harmed=4">look</a><iframe srcdoc="<script>parent.harmed=5</script>"></iframe>'
_TEMPLATE = "${window.harmed=6} {{window.harmed=7}} &lt;b&gt; <!-- -->"
_STREAM = "one\n\nevent: release\ndata: {}\n\nid: 1"
_BACKWARDS = "\u202egnp.exe\u202c and \u2067 right to left"
_TERMINAL = "\x1b[31mred\x1b[0m\x07"
_LONG = "weights-" + "x" * 4096
HOSTILE = (_MARKUP, _QUOTES, _TEMPLATE, _STREAM, _BACKWARDS, _TERMINAL, _LONG)


def _plant(stage: Stage) -> None:
    """Everywhere that others than the controller write to, and where it quotes them."""
    # As long as the definition lets it be.
    text = " ".join(HOSTILE)[:4000]
    pods = stage.server.list(PODS, NAMESPACE)
    canary = next(each for each in pods if each["metadata"]["labels"][LWS_NAME] != NAME)
    ill = {
        "workload": canary["metadata"]["labels"][LWS_NAME],
        "group": "0",
        "pod": canary["metadata"]["name"],
        "container": "vllm-leader",
        "reason": _MARKUP,
        "message": text,
    }
    stage.patch_status(ROLLOUTS, NAME, {"message": text, "notReadyGroups": [ill]})
    ended = {"exitCode": 1, "reason": _QUOTES, "message": text, "finishedAt": "2026-03-01T08:00:00Z"}
    for each in pods:
        states = [
            {
                "name": one["name"],
                "image": one["image"],
                "imageID": "",
                "ready": False,
                "restartCount": 3,
                "state": {"waiting": {"reason": _MARKUP, "message": text}},
                "lastState": {"terminated": ended},
            }
            for one in each["spec"]["containers"]
        ]
        name = each["metadata"]["name"]
        # A kubelet that is heard of would correct this at once.
        stage.patch(PODS, name, {"metadata": {"annotations": {f"{PREFIX}{CUT_OFF}": "true"}}})
        stage.patch_status(PODS, name, {"containerStatuses": states, "message": text})
    for number, one in enumerate(HOSTILE):
        stage.server.create(
            CORE_EVENTS,
            {
                "metadata": {"name": f"hostile-{number}", "namespace": NAMESPACE},
                "involvedObject": {"kind": "Rollout", "namespace": NAMESPACE, "name": NAME, **_uid(stage)},
                "type": "Warning",
                "reason": _MARKUP[:100],
                "message": one[:1000],
                "firstTimestamp": "2026-03-01T08:00:00Z",
                "lastTimestamp": "2026-03-01T08:00:00Z",
                "count": 1,
            },
        )
    stage.patch(LEADER_WORKER_SETS, NAME, {"metadata": {"annotations": {"kubernetes.io/change-cause": _QUOTES}}})


def _uid(stage: Stage) -> dict[str, Any]:
    return {"uid": stage.rollout()["metadata"]["uid"], "apiVersion": ROLLOUTS.api_version}


async def _unharmed(tab: Tab) -> None:
    """The texts are text nodes, and the page is as wide as before."""
    for text in ("<script>window.harmed=2</script>", "{{window.harmed=7}} &lt;b&gt;"):
        await tab.sees(text, within=tab.main)
    found = await tab.page.evaluate("""() => ({
        harmed: window.harmed ?? null,
        foreign: document.querySelectorAll("main script, main iframe, [onload], [onerror], [srcdoc]").length,
        links: [...document.links].filter((each) => !each.href.startsWith(location.origin)).map((each) => each.href),
        wide: document.documentElement.scrollWidth - innerWidth,
        controls: /[\\u0000-\\u0008\\u000b-\\u001f\\u007f]/.test(document.body.innerText),
    })""")
    assert found == {"harmed": None, "foreign": 0, "links": [], "wide": min(found["wide"], 0), "controls": False}
    # A text that runs from right to left turns nothing around but itself.
    turned = await tab.page.evaluate("""() => {
        const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        const found = [];
        for (let node = walker.nextNode(); node; node = walker.nextNode()) {
            if (!/[\\u202a-\\u202e\\u2066-\\u2069]/.test(node.data)) continue;
            const style = getComputedStyle(node.parentElement);
            const apart = ["isolate", "isolate-override", "plaintext"].includes(style.unicodeBidi);
            if (!apart && style.display.startsWith("inline")) found.push(node.parentElement.outerHTML.slice(0, 200));
        }
        return found;
    }""")
    assert turned == []


async def test_texts_of_others_are_shown_as_text(standing: Stage, visitors: Visitors) -> None:
    _plant(standing)
    dashboard = await standing.dashboard()
    for width in (360, 1280):
        tab = await visitors.tab(dashboard.url, width=width)
        await tab.row(NAME).wait_for()
        await _unharmed(tab)
        await tab.row(NAME).get_by_role("link").first.click()
        await tab.reads_state("AwaitingApproval")
        await _unharmed(tab)
        await tab.picture(f"hostile-{width}")
        await tab.cell(0).last.click()
        await tab.reads_group(0)
        await tab.sees(_QUOTES, within=tab.panel)
        await _unharmed(tab)
        await tab.picture(f"hostile-group-{width}")
        tab.calm()


async def test_an_address_with_markup_is_text_as_well(standing: Stage, visitors: Visitors) -> None:
    dashboard = await standing.dashboard()
    tab = await visitors.tab(dashboard.url)
    await tab.row(NAME).wait_for()
    await tab.page.goto(dashboard.at("?q=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&state=%3Cscript%3E&ns=%22%3E%3Cb%3E"))
    await tab.page.get_by_role("searchbox").wait_for()
    await tab.page.goto(dashboard.at(f"{NAMESPACE}/{NAME}?group=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E/0"))
    await tab.reads_state("AwaitingApproval")
    assert await tab.page.locator("img[onerror]").count() == 0
    for address in ("%3Cscript%3E/x", "default/%2e%2e", "default/no-such-release"):
        await tab.page.goto(dashboard.at(address))
    tab.calm(but=NOT_ANSWERED)
