"""What a run is given before it is driven: a drill model brings its own tools, a real one what its agent names."""

from agents.drill.tools import GetInvoice
from agents.spec import Limits, ModelSpec, RunSpec
from control.runs import outfit


class NoNotebook:
    async def keep(self, note: str, *, run: str, call: str) -> bool:
        raise AssertionError("nothing was to be kept")


def spec(base_url: str, model: str = "invoice-timeout-exact") -> RunSpec:
    return RunSpec(
        id="r",
        root="r",
        parent=None,
        path=("r",),
        agent="default",
        task="go",
        prompt="You are a test agent.",
        tools=("read_file", "run_command"),
        model=ModelSpec(model=model, base_url=base_url),
        limits=Limits(),
    )


def test_drill_model_brings_its_own_tools_behind_those_of_its_agent(settings) -> None:
    found = outfit.registry(spec(settings.DRILL_URL), NoNotebook())
    assert found.names == ("read_file", "run_command", GetInvoice.spec.name)
    assert outfit.registry(spec(settings.DRILL_URL, "tour"), NoNotebook()).names == ("read_file", "run_command")


def test_model_of_a_drill_name_elsewhere_gets_only_what_its_agent_names() -> None:
    assert outfit.registry(spec("http://127.0.0.1:9/v1"), NoNotebook()).names == ("read_file", "run_command")


def test_only_drill_models_have_their_commands_run_with_this_python(settings) -> None:
    marks = {"PILOTHOUSE_RUN": "r"}
    assert outfit.environment(spec("http://127.0.0.1:9/v1"), marks) == marks
    found = outfit.environment(spec(settings.DRILL_URL), marks)
    assert found["PILOTHOUSE_RUN"] == "r" and "PATH" in found
