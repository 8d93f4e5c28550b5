//! The settings of `run` and of contracts, with what each means.

use super::shape::{Choice, Key, Kinds, Shape, Variant, key, required};

const COUNT: Shape = Shape::Whole { least: 1, most: u32::MAX as u64 };
const COUNT_OR_NONE: Shape = Shape::Whole { least: 0, most: u32::MAX as u64 };
/// Beyond this doubles are not exact.
const TOKENS: Shape = Shape::Whole { least: 1, most: 1 << 53 };

/// Keys of a contract, inline or in a separate file.
pub(super) const CONTRACT: &[Key] = &[
    key("id", "Name in reports. Default: `contract`.", Shape::Text),
    required("goal", "Goal of the run.", Shape::Text),
    key(
        "required_outputs",
        "Outputs that the run must produce before it is done.",
        Shape::List(&Shape::Section(OUTPUT)),
    ),
    key("questions", "Questions that only the user can answer.", Shape::List(&Shape::Section(QUESTION))),
    key(
        "acceptability",
        "Requirements for the model's own report. Enforced in strict automation.",
        Shape::Section(ACCEPTABILITY),
    ),
    key("created_at", "Creation time, human-readable.", Shape::Text),
];

const OUTPUT: &[Key] = &[
    required("id", "Name within the contract.", Shape::Text),
    required("description", "Description for the model and the report.", Shape::Text),
    key(
        "type",
        "Kind of output, for the report. Default: `response`.",
        Shape::Word(&[
            ("artifact", "A file or a stored artifact."),
            ("response", "Content of an answer."),
            ("action", "An action."),
        ]),
    ),
    key("predicate", "Check of the output. Default: none.", Shape::Kinds(&PREDICATES)),
    key("optional", "Whether the run may end without it. Default: false.", Shape::Flag),
];

const QUESTION: &[Key] = &[
    required("id", "Name within the contract.", Shape::Text),
    required("question", "The question.", Shape::Text),
    key("required_for", "Ids of the outputs that depend on the answer.", Shape::List(&Shape::Text)),
    key("asked", "Whether the user received the question.", Shape::Flag),
    key("answer", "The answer.", Shape::Text),
];

const ACCEPTABILITY: &[Key] = &[
    key("max_known_unknowns", "Maximum number of open questions. Default: 0.", COUNT_OR_NONE),
    key("min_confidence", "Minimum confidence of the model. Default: 0.6.", Shape::Share),
    key("allow_partial", "Whether optional outputs may be unmet. Default: false.", Shape::Flag),
];

const PREDICATES: Kinds = Kinds {
    what: "a predicate",
    kinds: &[
        Variant {
            name: "always_true",
            about: "Always met: the requirement only informs the model.",
            args: &[],
        },
        Variant {
            name: "file_exists",
            about: "A regular file exists.",
            args: &[required("path", "Path in the workspace.", Shape::Text)],
        },
        Variant {
            name: "contains_text",
            about: "A text matches a pattern, ignoring case.",
            args: &[
                required("pattern", "A regular expression.", Shape::Text),
                key(
                    "field",
                    "Text to search: `response` (the newest answer), `any_response`, `transcript`, `artifact:ITEM`, or \
                     the name of data from the program. Default: `response`.",
                    Shape::Text,
                ),
            ],
        },
        Variant {
            name: "tool_result_success",
            about: "The latest result of a tool is a success.",
            args: &[
                required("tool_name", "Name of the tool for the model.", Shape::Text),
                key("args_match", "Only calls with these arguments count.", Shape::Object),
                key("min_count", "Minimum number of successful results. Default: 1.", COUNT),
            ],
        },
        Variant {
            name: "json_schema_valid",
            about: "Data matches a JSON Schema.",
            args: &[
                required("schema", "The schema.", Shape::Object),
                key(
                    "source",
                    "Data to check: `response_json` (the newest answer), `artifact:ITEM`, `tool:NAME` (its latest \
                     successful result), or the name of data from the program. Default: `data`.",
                    Shape::Text,
                ),
            ],
        },
        Variant {
            name: "custom",
            about: "A check of the program.",
            args: &[required("check", "Name of the check.", Shape::Text)],
        },
    ],
};

/// Limits of a run.
pub(super) const LIMITS: &[Key] = &[
    key("turns", "Turns. Default: 50.", COUNT),
    key("iterations", "Model calls of all turns together. Default: 1000.", COUNT),
    key("tool_calls", "Tool calls of all turns together. Default: 4000.", COUNT_OR_NONE),
    key("tokens", "Input and output tokens of all turns together. Default: 20000000.", TOKENS),
    key("cost", "Cost reported by the provider. Default: 100.", Shape::Money),
    key("elapsed", "Time of all turns together. Default: 4h.", Shape::Span),
];

/// The section `run`.
pub(super) const RUN: &[Key] = &[
    key(
        "mode",
        "How to treat an end that is not accepted. Default: `interactive`.",
        Shape::Word(&[
            (
                "interactive",
                "After a few reminders, a missing completion signal is accepted and noted in the result.",
            ),
            ("strict_automation", "Every gate must accept before the run is done."),
        ]),
    ),
    key("limits", "Limits of a run, over all its turns.", Shape::Section(LIMITS)),
    key(
        "signal",
        "Whether the model must report completion with a tool. Default: true.",
        Shape::Switch(SIGNAL),
    ),
    key(
        "contract",
        "Required outputs of a run, inline or in a file next to the descriptor.",
        Shape::TextOr(&Shape::Section(CONTRACT)),
    ),
    key(
        "work_items",
        "Whether the model has tools for a list of work items, all of which must be finished before the run \
         ends. Default: false.",
        Shape::Switch(WORK_ITEMS),
    ),
    key(
        "stall",
        "Whether a run without progress ends. Default: true in `strict_automation` only.",
        Shape::Switch(STALL),
    ),
    key("compaction", "Compaction of the model's view of a long run. Default: none.", COMPACTION),
    key("guidance", "Texts for the model beside the conversation.", Shape::Section(GUIDANCE)),
];

const SIGNAL: &[Key] = &[
    key(
        "retries",
        "Consecutive ends without the signal that are rejected before an interactive run accepts one. Default: 3.",
        COUNT_OR_NONE,
    ),
    key(
        "prompts",
        "Consecutive turns without a tool call that get a prompt to continue. Default: 5.",
        COUNT_OR_NONE,
    ),
    key("tool", "The name of the tool. Default: `work_complete`.", Shape::Text),
];

const WORK_ITEMS: &[Key] = &[key("shown", "Maximum number of items in reminders. Default: 20.", COUNT)];

const STALL: &[Key] = &[
    key(
        "threshold",
        "Consecutive turns without a change. Default: 3.",
        Shape::Whole { least: 2, most: u32::MAX as u64 },
    ),
    key(
        "reaction",
        "Reaction to a stall. Default: `stop`.",
        Shape::Word(&[
            ("stop", "The run stops."),
            ("nudge_then_stop", "The model gets one reminder, then the run stops."),
        ]),
    ),
];

const COMPACTION: Shape = Shape::Choice(&Choice { key: "preset", kinds: COMPACTIONS });

/// The ways in which the model is shown less.
pub(super) const COMPACTIONS: &[Variant] = &[
    Variant {
        name: "ladder",
        about: "At 80 % of the window, old results are cleared or stored, and the rest is summarized.",
        args: &[PRESET, WINDOW],
    },
    Variant {
        name: "summarize",
        about: "Old messages are summarized when space for an answer runs out.",
        args: &[PRESET, WINDOW],
    },
    Variant {
        name: "truncate",
        about: "The oldest messages are dropped above a number of tokens.",
        args: &[
            PRESET,
            WINDOW,
            key(
                "above",
                "Tokens of messages above which they are dropped. Default: 80 % of the window.",
                TOKENS,
            ),
            key("to", "Tokens of messages that are kept. Default: 50 % of the window.", TOKENS),
            KEEP_FIRST_PROMPT,
        ],
    },
    Variant {
        name: "sliding-window",
        about: "Only the newest messages are kept, calls with their results.",
        args: &[
            PRESET,
            WINDOW,
            key(
                "groups",
                "Number of messages to keep; calls count as one with their results. Default: 40.",
                COUNT,
            ),
            KEEP_FIRST_PROMPT,
        ],
    },
    Variant {
        name: "selective",
        about: "Only the newest calls are kept, with their results.",
        args: &[PRESET, WINDOW, CALLS],
    },
    Variant {
        name: "tool-results",
        about: "All but the newest calls become one line each, with excerpts of their results.",
        args: &[PRESET, WINDOW, CALLS],
    },
];

const PRESET: Key = required("preset", "Compaction policy.", Shape::Text);
const WINDOW: Key = key(
    "window",
    "Tokens of the model's context window. Default: 128000.",
    Shape::Whole { least: 1_000, most: 1 << 53 },
);
const CALLS: Key = key("calls", "Number of unchanged answers with calls. Default: 4.", COUNT);
const KEEP_FIRST_PROMPT: Key =
    key("keep_first_prompt", "Whether the first message of the user is kept. Default: true.", Shape::Flag);

const GUIDANCE: &[Key] = &[
    key("tokens", "Maximum tokens of all texts in one request. Default: 600.", COUNT_OR_NONE),
    key(
        "off",
        "Omitted parts.",
        Shape::List(&Shape::Word(&[
            ("items", "Open work items."),
            ("instructions", "Instructions whose condition holds."),
            ("budget", "Remaining limits, when they are low."),
            ("environment", "Environment of the run."),
        ])),
    ),
    key("texts", "Custom texts of a part, or after a rejected end.", Shape::Section(TEXTS)),
    key(
        "instructions",
        "Conditional texts, instead of the default ones (near the limit, after compactions).",
        Shape::List(&Shape::Section(INSTRUCTION)),
    ),
    key("budget_from", "Used share of a limit from which the rest is reported. Default: 0.8.", Shape::Share),
    key("environment", "Description of the environment.", Shape::Text),
];

const TEXTS: &[Key] = &[
    key("items", "Text before the open work items.", Shape::Text),
    key("budget", "Text before the remaining limits.", Shape::Text),
    key("environment", "Text before the environment.", Shape::Text),
    key("continuation", "Text after a turn without a tool call, if the run continues.", Shape::Text),
    key("work_complete_missing", "Text if the completion signal is missing.", Shape::Text),
    key("contract_gap", "Text if the contract is not met.", Shape::Text),
    key("acceptability", "Text if the model's report is not acceptable.", Shape::Text),
    key("control_invariant", "Text if an audit failed without a response.", Shape::Text),
    key("work_items_incomplete", "Text if work items are open.", Shape::Text),
    key("hook_block", "Text if a check of the program refused the end.", Shape::Text),
    key("stall_nudge", "Text if the run makes no progress.", Shape::Text),
];

const INSTRUCTION: &[Key] = &[
    required("id", "Its name.", Shape::Text),
    required("text", "Text for the model.", Shape::Text),
    key("when", "Conditions, all of which must hold. Default: immediately.", Shape::Section(WHEN)),
    key(
        "again",
        "Whether the text is sent each time the condition holds. Default: once per run.",
        Shape::Flag,
    ),
];

const WHEN: &[Key] = &[
    key("turn", "First turn.", COUNT),
    key("share_of_turns", "Used share of the maximum turns.", Shape::Share),
    key("compactions", "Minimum number of compactions.", COUNT_OR_NONE),
    key("called", "Minimum calls of tools, by name.", Shape::Named(&COUNT_OR_NONE)),
    key("never_called", "Tools that were never called.", Shape::List(&Shape::Text)),
    key("items_left", "There are work items, and some are left.", Shape::Flag),
    key("no_item_complete", "There are work items, and none is complete.", Shape::Flag),
];
