"""The commands of `recommend`: name, the module that holds it, its line in the list."""

from recommender.cli.later import Later

COMMANDS = (
    Later("plan", "plan:command", "Which cloud GPUs to rent for a job; the default."),
    Later("simulate", "commands.simulate:command", "One plan, over thousands of simulated runs."),
    Later("backtest", "commands.backtest:command", "Fallback policies on recorded spot markets."),
    Later("calibrate", "commands.calibrate:command", "Fit a job's speed to runs of your own."),
    Later("accuracy", "commands.accuracy:command", "Errors of the models on published figures."),
    Later("sources", "commands.catalog:sources_command", "Where figures come from; licences."),
    Later("doctor", "commands.about:doctor_command", "Check that everything needed is there."),
    Later("schema", "commands.about:schema_command", "The JSON Schema of answers and errors."),
    Later("jobs", "commands.jobs:group", "The jobs that come with the tool, and your own."),
    Later("catalog", "commands.catalog:group", "Offers, how old prices are, how to renew them."),
    Later("trace", "commands.trace:group", "Recorded spot markets, and laws kept for offers."),
    Later("bench", "commands.bench:group", "Measure machines; plan with what was measured."),
    Later("config", "commands.config:group", "Defaults that are kept, and where they are from."),
)
