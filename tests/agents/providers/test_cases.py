"""Field cases of streaming, each against a real server over TCP; fixtures/cases holds the bytes."""

import asyncio

import pytest

from agents.errors import ModelError
from agents.messages import ToolCall, Usage
from agents.ports import ChatAnswer
from agents.providers import Stalls
from tests.agents.providers.scripted import DONE, Play, answer_to, ask, case, chunk, event, model_at, provider


def asked(answer: ChatAnswer) -> list[tuple[str, str]]:
    return [(call.name, call.args) for call in answer.message.tool_calls]


async def failure_of(body: bytes, *, kind: str = "openai", **play: object) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await answer_to(body, kind=kind, **play)
    return caught.value


@pytest.mark.case("A1-01")
async def test_keep_alive_comments_are_no_events_and_no_text() -> None:
    streams = case("A1-01")
    lines = [line + b"\n" for line in streams["keep_alives"].split(b"\n")]
    heard: list[str] = []
    async with provider(Play(lines, chunked=True)) as served:
        answer = await ask(model_at(served.base_url), heard.append)
    assert (answer.message.text, answer.usage) == ("Hi!", Usage(input=9, output=2))
    assert "".join(heard) == "Hi!"


@pytest.mark.case("A1-01")
async def test_a_stream_of_comments_alone_is_no_answer() -> None:
    assert (await failure_of(case("A1-01")["only_keep_alives"])).kind == "malformed_response"


@pytest.mark.case("A1-03")
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
async def test_every_kind_of_line_end_gives_the_same_answer(start: bytes, end: bytes) -> None:
    stream = start + case("A1-03")["line_ends"].replace(b"\n", end)
    # Cut after every CR, so that a read ends in CR and the next begins with LF.
    pieces = [piece for piece in stream.replace(b"\r", b"\r<cut>").split(b"<cut>") if piece]
    assert (await answer_to(*pieces, chunked=True)).message.text == "both lines"
    assert (await answer_to(stream)).message.text == "both lines"


@pytest.mark.case("A1-04")
async def test_unicode_separators_are_text_and_end_no_line() -> None:
    answer = await answer_to(case("A1-04")["separators"])
    assert answer.message.text == "a\u2028b\u0085c\u2029x\x0by\x0cz"


@pytest.mark.case("A1-05")
async def test_characters_cut_by_chunk_edges_stay_whole_at_every_offset() -> None:
    stream = case("A1-05")["wide"]
    one_by_one = await answer_to(*(stream[i : i + 1] for i in range(len(stream))), chunked=True)
    assert one_by_one.message.text == "上海 🧭 naïve"
    first = stream.index("上".encode())
    plays = [Play((stream[:at], stream[at:]), chunked=True) for at in range(first, first + 24)]
    async with provider(*plays) as served:
        model = model_at(served.base_url)
        assert {(await ask(model)).message.text for _ in plays} == {"上海 🧭 naïve"}


@pytest.mark.case("A1-06")
async def test_a_stream_that_ends_inside_a_tool_call_is_a_truncated_stream_and_no_answer() -> None:
    error = await failure_of(case("A1-06")["half_a_call"])
    assert error.kind == "malformed_response"
    assert "truncated stream" in error.message
    assert (await failure_of(case("A1-06")["half_a_call_and_end_mark"])).kind == "malformed_response"
    assert (await failure_of(case("A1-06")["half_a_call"], chunked=True, drop=True)).kind == "connection"


@pytest.mark.case("A1-06")
async def test_a_finish_reason_without_an_end_mark_is_an_answer() -> None:
    stream = case("A1-06")["no_end_mark"]
    broken = await answer_to(stream, chunked=True, drop=True)
    for answer in (await answer_to(stream), await answer_to(stream, chunked=True), broken):
        assert (answer.message.text, answer.finish_reason) == ("All three are green.", "stop")


@pytest.mark.case("A1-06")
@pytest.mark.parametrize("name", ["end_mark_and_silence", "end_mark_without_blank_line"])
async def test_the_end_mark_ends_the_call_at_once_though_the_socket_stays_open(name: str) -> None:
    never = Stalls(byte_silence_s=None, no_progress_s=None, usage_wait_s=3600)
    async with provider(Play([case("A1-06")[name]], hold=True)) as served:
        answer = await asyncio.wait_for(ask(model_at(served.base_url, stalls=never)), 10)
        await asyncio.wait_for(served.hung_up.wait(), 10)
    assert answer.message.text == "All three are green."


@pytest.mark.case("A1-07")
@pytest.mark.parametrize("name", sorted(case("A1-07")))
async def test_an_error_inside_a_stream_fails_the_attempt_with_the_providers_words(name: str) -> None:
    error = await failure_of(case("A1-07")[name])
    assert error.kind in ("server_error", "overloaded")
    assert error.wire.status == 200
    assert any(words in error.message for words in ("all upstreams are busy", "upstream went away", "try again"))
    assert "sk-live-0123456789" not in error.message + error.wire.body


@pytest.mark.case("A1-09")
@pytest.mark.parametrize("name", sorted(case("A1-09")))
async def test_usage_is_found_wherever_it_comes_and_the_text_is_kept(name: str) -> None:
    answer = await answer_to(case("A1-09")[name])
    assert (answer.message.text, answer.usage) == ("fine", Usage(input=700, output=11))


@pytest.mark.case("A1-09")
async def test_usage_is_waited_for_after_the_finish_reason_but_not_for_ever() -> None:
    late = asyncio.Event()
    usage = {"prompt_tokens": 3, "completion_tokens": 1}
    pieces = [chunk({"content": "ok"}, "stop"), event({"choices": [], "usage": usage})]

    async with provider(Play(pieces, hold=True, gate=late.wait)) as served:  # type: ignore[arg-type]
        stalls = Stalls(usage_wait_s=3600)
        asking = asyncio.ensure_future(ask(model_at(served.base_url, stalls=stalls), lambda text: late.set()))
        assert (await asyncio.wait_for(asking, 10)).usage == Usage(input=3, output=1)
    async with provider(Play(pieces[:1], hold=True)) as served:
        answer = await asyncio.wait_for(ask(model_at(served.base_url, stalls=Stalls(usage_wait_s=0.05))), 10)
        assert (answer.estimated, answer.cost_usd, answer.cost_source) == (True, None, "unknown")


@pytest.mark.case("A1-10")
@pytest.mark.parametrize("name", sorted(set(case("A1-10")) - {"single", "nobodys"}))
async def test_fragments_find_their_calls_however_they_are_labelled(name: str) -> None:
    answer = await answer_to(case("A1-10")[name])
    assert asked(answer) == [("read_file", '{"path":"one"}'), ("read_file", '{"path":"two"}')]
    first, second = answer.message.tool_calls
    assert first.wire_id != second.wire_id
    assert first.call != second.call


@pytest.mark.case("A1-10")
async def test_one_call_without_an_index_is_one_call() -> None:
    assert asked(await answer_to(case("A1-10")["single"])) == [("read_file", '{"path":"one"}')]


@pytest.mark.case("A1-10")
async def test_a_fragment_of_nobodys_call_fails_loudly() -> None:
    assert (await failure_of(case("A1-10")["nobodys"])).kind == "malformed_response"


@pytest.mark.case("A1-12")
@pytest.mark.parametrize(
    ("variant", "name"),
    [("repeated", "read_file"), ("emptied", "read_file"), ("nulled", "read_file"),
     ("split", "edit_existing_file"), ("growing", "edit_existing_file")],
)  # fmt: skip
async def test_names_are_neither_doubled_nor_wiped_and_split_ones_are_joined(variant: str, name: str) -> None:
    assert asked(await answer_to(case("A1-12")[variant])) == [(name, '{"path":"b"}')]


@pytest.mark.case("A1-14")
@pytest.mark.parametrize("name", ["stop", "other", "null"])
async def test_complete_calls_count_whatever_the_finish_reason(name: str) -> None:
    answer = await answer_to(case("A1-14")[name])
    assert answer.message.text == "First I look around. "
    assert asked(answer) == [("list_dir", f'{{"path":"d{n}"}}') for n in range(3)]
    assert not answer.cut


@pytest.mark.case("A1-14")
async def test_promised_calls_that_never_come_are_an_empty_answer() -> None:
    error = await failure_of(case("A1-14")["promised_and_missing"])
    assert error.kind == "malformed_response"
    assert "empty answer" in error.message


@pytest.mark.case("A1-15")
@pytest.mark.parametrize("name", ["length", "relabelled", "first_of_two_is_whole"])
async def test_an_answer_cut_at_the_output_limit_is_marked_as_cut(name: str) -> None:
    answer = await answer_to(case("A1-15")[name], limit=64)
    assert answer.cut
    assert answer.message.tool_calls[-1].name == "write_file"
    assert answer.message.tool_calls[-1].args.startswith('{"path":"b.txt"')
    assert not (await answer_to(case("A1-15")["whole"], limit=64)).cut


@pytest.mark.case("A1-16")
async def test_an_overload_inside_a_message_stream_fails_the_attempt_and_books_what_was_used() -> None:
    error = await failure_of(case("A1-16")["overloaded"], kind="anthropic")
    assert error.kind == "overloaded"
    assert error.usage == Usage(input=31, output=15, cache_read=400)


@pytest.mark.case("A1-16")
async def test_unknown_events_and_orphan_fragments_of_a_message_stream_are_ignored() -> None:
    answer = await answer_to(case("A1-16")["whole"], kind="anthropic")
    assert answer.message.text == "One moment."
    assert asked(answer) == [("read_file", '{"path": "README"}'), ("now", "{}")]
    assert answer.usage == Usage(input=31, output=40, cache_read=400)
    assert (await failure_of(case("A1-16")["no_message_stop"], kind="anthropic")).kind == "malformed_response"


async def test_calls_are_ours_by_a_key_of_their_own() -> None:
    call = {"index": 0, "id": "k", "function": {"name": "f", "arguments": "{}"}}
    answer = await answer_to(chunk({"tool_calls": [call]}, "tool_calls") + DONE)
    (only,) = answer.message.tool_calls
    assert only == ToolCall(call=only.call, wire_id="k", name="f", args="{}")
    assert len(only.call) == 36
