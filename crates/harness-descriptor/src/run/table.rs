//! The settings of `run` and of contracts, with what each means.

use super::shape::{Choice, Key, Kinds, Shape, Variant, key, required};

const COUNT: Shape = Shape::Whole { least: 1, most: u32::MAX as u64 };
const COUNT_OR_NONE: Shape = Shape::Whole { least: 0, most: u32::MAX as u64 };
/// Beyond this doubles are not exact.
const TOKENS: Shape = Shape::Whole { least: 1, most: 1 << 53 };

/// A contract, as a section or a file of its own.
pub(super) const CONTRACT: &[Key] = &[
    key("id", "Its name, in reports. Default: `contract`.", Shape::Text),
    required("goal", "What it is about.", Shape::Text),
    key(
        "required_outputs",
        "What the run must have produced before it may be called done.",
        Shape::List(&Shape::Section(OUTPUT)),
    ),
    key("questions", "What only the user can answer.", Shape::List(&Shape::Section(QUESTION))),
    key(
        "acceptability",
        "What is good enough, judged on the model's own report. Enforced in strict automation.",
        Shape::Section(ACCEPTABILITY),
    ),
    key("created_at", "When it was made, for people.", Shape::Text),
];

const OUTPUT: &[Key] = &[
    required("id", "Its name within the contract.", Shape::Text),
    required("description", "What it is, for people and for the model.", Shape::Text),
    key(
        "type",
        "What sort of thing it is, for people. Default: `response`.",
        Shape::Word(&[
            ("artifact", "A file or a stored artifact."),
            ("response", "Something in an answer."),
            ("action", "Something done."),
        ]),
    ),
    key("predicate", "How it is judged. Default: not at all.", Shape::Kinds(&PREDICATES)),
    key("optional", "Whether the run may end without it. Default: false.", Shape::Flag),
];

const QUESTION: &[Key] = &[
    required("id", "Its name within the contract.", Shape::Text),
    required("question", "The question.", Shape::Text),
    key("required_for", "The ids of the outputs that need the answer.", Shape::List(&Shape::Text)),
    key("asked", "Whether it was asked.", Shape::Flag),
    key("answer", "The answer.", Shape::Text),
];

const ACCEPTABILITY: &[Key] = &[
    key("max_known_unknowns", "Open questions at most. Default: 0.", COUNT_OR_NONE),
    key("min_confidence", "How sure the model must be. Default: 0.6.", Shape::Share),
    key("allow_partial", "Whether optional outputs may stay open. Default: false.", Shape::Flag),
];

const PREDICATES: Kinds = Kinds {
    what: "a predicate",
    kinds: &[
        Variant { name: "always_true", about: "Passes: the requirement is for the model alone.", args: &[] },
        Variant {
            name: "file_exists",
            about: "A regular file is there.",
            args: &[required("path", "Its path, below the workspace.", Shape::Text)],
        },
        Variant {
            name: "contains_text",
            about: "A text holds a pattern, whatever its case.",
            args: &[
                required("pattern", "A regular expression.", Shape::Text),
                key(
                    "field",
                    "Where: `response` (the newest answer), `any_response`, `transcript`, `artifact:ITEM`, or \
                     the name of data that the program gives. Default: `response`.",
                    Shape::Text,
                ),
            ],
        },
        Variant {
            name: "tool_result_success",
            about: "The latest result of a tool is a good one.",
            args: &[
                required("tool_name", "The name by which the model calls the tool.", Shape::Text),
                key("args_match", "Only calls whose arguments hold these count.", Shape::Object),
                key("min_count", "How many good results there must be. Default: 1.", COUNT),
            ],
        },
        Variant {
            name: "json_schema_valid",
            about: "Data fits a JSON Schema.",
            args: &[
                required("schema", "The schema.", Shape::Object),
                key(
                    "source",
                    "The data: `response_json` (the newest answer), `artifact:ITEM`, `tool:NAME` (its latest \
                     good result), or the name of data that the program gives. Default: `data`.",
                    Shape::Text,
                ),
            ],
        },
        Variant {
            name: "custom",
            about: "The program judges.",
            args: &[required("check", "The name of its check.", Shape::Text)],
        },
    ],
};

/// Limits of a run.
pub(super) const LIMITS: &[Key] = &[
    key("turns", "Turns. Default: 50.", COUNT),
    key("iterations", "Model calls of all turns together. Default: 1000.", COUNT),
    key("tool_calls", "Tool calls of all turns together. Default: 4000.", COUNT_OR_NONE),
    key("tokens", "Input and output tokens of all turns together. Default: 20000000.", TOKENS),
    key("cost", "Money as the provider reports it. Default: 100.", Shape::Money),
    key("elapsed", "Time of all turns together. Default: 4h.", Shape::Span),
];

/// The section `run`.
pub(super) const RUN: &[Key] = &[
    key(
        "mode",
        "What happens to a run whose end is not accepted. Default: `interactive`.",
        Shape::Word(&[
            ("interactive", "After some nudges a missing completion signal is accepted; the result says so."),
            ("strict_automation", "Never accepted: the run ends as done only when every gate is satisfied."),
        ]),
    ),
    key("limits", "Limits of a run, over all its turns.", Shape::Section(LIMITS)),
    key(
        "signal",
        "Whether the model must say that the work is done, by a tool. Default: true.",
        Shape::Switch(SIGNAL),
    ),
    key(
        "contract",
        "What a run must have produced, here or in a file beside the descriptor.",
        Shape::TextOr(&Shape::Section(CONTRACT)),
    ),
    key(
        "work_items",
        "Whether the model keeps a list of what is to be done, by tools that it is given; the run is over only \
         when nothing is left on it. Default: false.",
        Shape::Switch(WORK_ITEMS),
    ),
    key(
        "stall",
        "Whether a run ends that changes nothing any more. Default: true in `strict_automation` only.",
        Shape::Switch(STALL),
    ),
    key("compaction", "How the model is shown less of a long run. Default: it is shown all.", COMPACTION),
    key("guidance", "What the model is told beside the conversation.", Shape::Section(GUIDANCE)),
];

const SIGNAL: &[Key] = &[
    key(
        "retries",
        "Ends without the signal in a row that are rejected before an interactive run accepts one. Default: 3.",
        COUNT_OR_NONE,
    ),
    key(
        "prompts",
        "Turns in a row without any tool call that are answered by a prompt to go on. Default: 5.",
        COUNT_OR_NONE,
    ),
    key("tool", "The name of the tool. Default: `work_complete`.", Shape::Text),
];

const WORK_ITEMS: &[Key] =
    &[key("shown", "Items that the model is reminded of at most. Default: 20.", COUNT)];

const STALL: &[Key] = &[
    key(
        "threshold",
        "Turns in a row that leave the same behind. Default: 3.",
        Shape::Whole { least: 2, most: u32::MAX as u64 },
    ),
    key(
        "reaction",
        "What follows. Default: `stop`.",
        Shape::Word(&[
            ("stop", "The run stops."),
            ("nudge_then_stop", "The model is told once, then the run stops."),
        ]),
    ),
];

const COMPACTION: Shape = Shape::Choice(&Choice { key: "preset", kinds: COMPACTIONS });

/// The ways in which the model is shown less.
pub(super) const COMPACTIONS: &[Variant] = &[
    Variant {
        name: "ladder",
        about: "From 80 % of the window on old results are cleared or stored elsewhere, the rest is summarized.",
        args: &[PRESET, WINDOW],
    },
    Variant {
        name: "summarize",
        about: "When the room for an answer gets short, what is old is summarized.",
        args: &[PRESET, WINDOW],
    },
    Variant {
        name: "truncate",
        about: "Above so many tokens of messages the oldest go.",
        args: &[
            PRESET,
            WINDOW,
            key("above", "Tokens of messages above which they go. Default: 80 % of the window.", TOKENS),
            key("to", "Tokens of messages that stay. Default: 50 % of the window.", TOKENS),
            KEEP_FIRST_PROMPT,
        ],
    },
    Variant {
        name: "sliding-window",
        about: "Only the newest messages stay, calls with their results.",
        args: &[
            PRESET,
            WINDOW,
            key("groups", "How many stay; calls count as one with their results. Default: 40.", COUNT),
            KEEP_FIRST_PROMPT,
        ],
    },
    Variant {
        name: "selective",
        about: "Of all calls with their results only the newest stay.",
        args: &[PRESET, WINDOW, CALLS],
    },
    Variant {
        name: "tool-results",
        about: "All but the newest calls become one line each, with the beginnings of their results.",
        args: &[PRESET, WINDOW, CALLS],
    },
];

const PRESET: Key = required("preset", "How.", Shape::Text);
const WINDOW: Key = key(
    "window",
    "Tokens of the model's context window. Default: 128000.",
    Shape::Whole { least: 1_000, most: 1 << 53 },
);
const CALLS: Key = key("calls", "How many answers with calls stay as they are. Default: 4.", COUNT);
const KEEP_FIRST_PROMPT: Key =
    key("keep_first_prompt", "Whether the first message of the user stays. Default: true.", Shape::Flag);

const GUIDANCE: &[Key] = &[
    key("tokens", "Tokens of all that is told with one request at most. Default: 600.", COUNT_OR_NONE),
    key(
        "off",
        "Parts that are not told.",
        Shape::List(&Shape::Word(&[
            ("items", "Which work items are left."),
            ("instructions", "Instructions whose moment has come."),
            ("budget", "What is left of the limits, when it is little."),
            ("environment", "Where the run takes place."),
        ])),
    ),
    key("texts", "Other words for a part, or for what a rejected end is told.", Shape::Section(TEXTS)),
    key(
        "instructions",
        "What to tell when, in place of the standard ones (near the limit, after compactions).",
        Shape::List(&Shape::Section(INSTRUCTION)),
    ),
    key(
        "budget_from",
        "The share of a limit from which on what is left is told. Default: 0.8.",
        Shape::Share,
    ),
    key("environment", "Where the run takes place, in words.", Shape::Text),
];

const TEXTS: &[Key] = &[
    key("items", "Before the work items that are left.", Shape::Text),
    key("budget", "Before what is left of the limits.", Shape::Text),
    key("environment", "Before where the run takes place.", Shape::Text),
    key("continuation", "When a turn called no tool and the run is not over.", Shape::Text),
    key("work_complete_missing", "When the completion signal is missing.", Shape::Text),
    key("contract_gap", "When the contract is not met.", Shape::Text),
    key("acceptability", "When the model's own report is not good enough.", Shape::Text),
    key("control_invariant", "When an audit failed and nothing has answered it.", Shape::Text),
    key("work_items_incomplete", "When work items are left.", Shape::Text),
    key("hook_block", "When a check of the program refused the end.", Shape::Text),
    key("stall_nudge", "When nothing changes any more.", Shape::Text),
];

const INSTRUCTION: &[Key] = &[
    required("id", "Its name.", Shape::Text),
    required("text", "What the model is told.", Shape::Text),
    key("when", "When: everything that is set must hold. Default: at once.", Shape::Section(WHEN)),
    key("again", "Whether it is told each time that it holds. Default: once in a run.", Shape::Flag),
];

const WHEN: &[Key] = &[
    key("turn", "From this turn on.", COUNT),
    key("share_of_turns", "From this share of the permitted turns on.", Shape::Share),
    key("compactions", "From so many compactions on.", COUNT_OR_NONE),
    key("called", "Tools that were called so often at least, by name.", Shape::Named(&COUNT_OR_NONE)),
    key("never_called", "Tools that were never called.", Shape::List(&Shape::Text)),
    key("items_left", "There are work items, and some are left.", Shape::Flag),
    key("no_item_complete", "There are work items, and none is complete.", Shape::Flag),
];
