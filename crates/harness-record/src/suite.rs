//! Regression suite files.

use std::path::{Path, PathBuf};

use harness_core::Json;
use harness_diagnostics::{Diagnostic, Fields, Findings, Item, Severity, YamlLimits};
use serde::{Deserialize, Serialize};

use super::compare::{CompareOptions, Section};
use super::replay::{InputMode, ReplayMode};
use super::sink::read_bounded;
use crate::error::{RecordError, RecordFile};

/// Version of suite files.
const VERSION: u32 = 1;

/// Code of an error in a suite.
const INVALID: &str = "suite.not_a_suite";

/// Maximum size of a suite file in bytes.
const LONGEST: u64 = 1 << 20;

/// Maximum number of cases in a suite.
const MOST_CASES: usize = 10_000;

/// Source of model answers in a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnswersFrom {
    /// The record, without a network.
    #[default]
    Recorded,
    /// A live model.
    Live,
}

/// Expectation of a case. Required and forbidden tools are checked; the rest is for the judge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Expectation {
    /// Intent of the case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    /// Tools that the candidate must call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub should_use_tools: Vec<String>,
    /// Tools that the candidate must not call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub should_avoid_tools: Vec<String>,
    /// Qualities to preserve.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub should_preserve: Vec<String>,
    /// Qualities to improve.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub should_improve: Vec<String>,
    /// Further notes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

/// Case of a suite file. Paths are relative to the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CaseSpec {
    /// Name of the case. Default the id of the recorded run.
    pub name: Option<String>,
    /// Record to compare with.
    pub baseline: PathBuf,
    /// Descriptor of the candidate. Default that of the suite.
    pub descriptor: Option<PathBuf>,
    /// Registry file of the candidate. Default that of the suite.
    pub registry: Option<PathBuf>,
    /// Source of tool results. Default that of the suite.
    pub mode: Option<ReplayMode>,
    /// Input of the run. Default that of the suite.
    pub input: Option<InputMode>,
    /// Source of model answers. Default that of the suite.
    pub answers: Option<AnswersFrom>,
    /// Expectation of the case.
    pub expect: Expectation,
}

/// Regression suite: the content of its file, with paths resolved.
///
/// ```yaml
/// version: 1
/// suite: support desk
/// descriptor: harness.yaml
/// cases:
///   - baseline: records/late-order.json
///   - name: no refunds for strangers
///     baseline: records/stranger.json
///     mode: hybrid
///     expect: { shouldAvoidTools: [refund] }
/// ```
///
/// JSON is YAML: a suite may be either.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Suite {
    /// Version of the format: 1.
    pub version: u32,
    /// Name of the suite.
    pub suite: Option<String>,
    /// Default descriptor.
    pub descriptor: Option<PathBuf>,
    /// Default registry file.
    pub registry: Option<PathBuf>,
    /// Default source of tool results: strict.
    pub mode: ReplayMode,
    /// Default input: recorded.
    pub input: InputMode,
    /// Default source of model answers: recorded.
    pub answers: AnswersFrom,
    /// Compared sections. Default all but the metadata of the caller.
    pub compare: CompareOptions,
    /// Data for the judge.
    pub metadata: Option<Json>,
    /// Cases in order.
    pub cases: Vec<CaseSpec>,
}

const REPLAY_MODES: [(&str, ReplayMode); 3] =
    [("strict", ReplayMode::Strict), ("hybrid", ReplayMode::Hybrid), ("live", ReplayMode::Live)];
const INPUT_MODES: [(&str, InputMode); 2] =
    [("recorded", InputMode::Recorded), ("question", InputMode::Question)];
const ANSWERS_FROM: [(&str, AnswersFrom); 2] =
    [("recorded", AnswersFrom::Recorded), ("live", AnswersFrom::Live)];
const SECTIONS: [(&str, Section); 5] = [
    ("response", Section::Response),
    ("toolCalls", Section::ToolCalls),
    ("policy", Section::Policy),
    ("guardrails", Section::Guardrails),
    ("metadata", Section::Metadata),
];

impl Expectation {
    fn read(fields: &Fields<'_>) -> Self {
        fields.known(&[
            "intent",
            "shouldUseTools",
            "shouldAvoidTools",
            "shouldPreserve",
            "shouldImprove",
            "notes",
        ]);
        Self {
            intent: fields.text("intent"),
            should_use_tools: fields.texts("shouldUseTools"),
            should_avoid_tools: fields.texts("shouldAvoidTools"),
            should_preserve: fields.texts("shouldPreserve"),
            should_improve: fields.texts("shouldImprove"),
            notes: fields.text("notes"),
        }
    }
}

impl CaseSpec {
    fn read(fields: &Fields<'_>) -> Self {
        fields.known(&["name", "baseline", "descriptor", "registry", "mode", "input", "answers", "expect"]);
        let expect = fields.section("expect", "write `shouldUseTools: [NAME]` or another expectation");
        Self {
            name: fields.text("name"),
            baseline: fields.required("baseline", "write the path of a run record").into(),
            descriptor: fields.text("descriptor").map(PathBuf::from),
            registry: fields.text("registry").map(PathBuf::from),
            mode: fields.one_of("mode", &REPLAY_MODES),
            input: fields.one_of("input", &INPUT_MODES),
            answers: fields.one_of("answers", &ANSWERS_FROM),
            expect: expect.as_ref().map(Expectation::read).unwrap_or_default(),
        }
    }
}

impl CompareOptions {
    fn read(fields: &Fields<'_>) -> Self {
        fields.known(&["includeSections", "excludeSections"]);
        let sections = |key: &str| {
            let items = fields.item(key)?.items("a list of sections", "write it as a list: `[policy]`");
            Some(items.iter().filter_map(|item| item.one_of(&SECTIONS)).collect())
        };
        Self {
            include_sections: sections("includeSections"),
            exclude_sections: sections("excludeSections").unwrap_or_default(),
        }
    }
}

fn all_but_metadata() -> CompareOptions {
    CompareOptions::default().without(Section::Metadata)
}

impl Suite {
    /// Reads a suite file. Blocks on the file system.
    ///
    /// # Errors
    /// A file that is unreadable, invalid, without cases, or of a newer version.
    pub fn read(path: impl Into<PathBuf>) -> Result<Self, RecordError> {
        let path = path.into();
        let text = read_bounded(&path, RecordFile::Suite, LONGEST)?;
        let mut suite = Self::from_text(path.clone(), &text)?;
        let parent = path.parent().unwrap_or(Path::new("")).to_owned();
        let from_here = |path: &mut PathBuf| *path = parent.join(&*path);
        suite.descriptor.iter_mut().for_each(from_here);
        suite.registry.iter_mut().for_each(from_here);
        for case in &mut suite.cases {
            from_here(&mut case.baseline);
            case.descriptor.iter_mut().for_each(from_here);
            case.registry.iter_mut().for_each(from_here);
        }
        Ok(suite)
    }

    /// Parses a suite, with paths as written; `name` replaces the path in messages.
    ///
    /// # Errors
    /// A text that is invalid, without cases, or of a newer version.
    pub fn from_text(name: impl Into<PathBuf>, text: &str) -> Result<Self, RecordError> {
        let suite = |error: Diagnostic| RecordError::Suite(Box::new(error));
        let limits = YamlLimits::for_text(LONGEST);
        let document = harness_diagnostics::read(text, name.into().display().to_string(), &limits, None)
            .map_err(|error| suite(error.into()))?;
        let version = document.root().and_then(|root| document.whole(document.get(root, "version")?));
        if let Some(version) = version.filter(|version| *version > VERSION.into()) {
            let message = format!("unsupported version {version}, expected {VERSION}");
            let place = document.place_at(&["version"]);
            return Err(suite(Diagnostic::new(Severity::Error, "suite.version", message).at(place)));
        }
        let findings = Findings::new(&document, INVALID);
        let suite = Fields::root(&findings, "the suite").map(|root| Self::of(&root.with_nulls_absent()));
        findings.finish(suite.unwrap_or_default()).map_err(RecordError::Suite)
    }

    fn of(root: &Fields<'_>) -> Self {
        root.known(&[
            "version",
            "suite",
            "descriptor",
            "registry",
            "mode",
            "input",
            "answers",
            "compare",
            "metadata",
            "cases",
        ]);
        if !root.has("version") {
            root.missing("version", &format!("write `version: {VERSION}`"));
        }
        let metadata = |item: &Item<'_>| {
            let json = root.document().json(item.node());
            if json.is_none() {
                item.expected("JSON", "remove infinities");
            }
            json
        };
        Self {
            version: root.whole("version", 1, VERSION.into()).map_or(0, |_| VERSION),
            suite: root.text("suite"),
            descriptor: root.text("descriptor").map(PathBuf::from),
            registry: root.text("registry").map(PathBuf::from),
            mode: root.one_of("mode", &REPLAY_MODES).unwrap_or_default(),
            input: root.one_of("input", &INPUT_MODES).unwrap_or_default(),
            answers: root.one_of("answers", &ANSWERS_FROM).unwrap_or_default(),
            compare: root
                .section("compare", "write `includeSections` or `excludeSections` below it")
                .map_or_else(all_but_metadata, |fields| CompareOptions::read(&fields)),
            metadata: root.item("metadata").and_then(|item| metadata(&item)),
            cases: cases(root),
        }
    }
}

fn cases(root: &Fields<'_>) -> Vec<CaseSpec> {
    const FORM: &str = "write `- baseline: RECORD` for each case";
    if !root.has("cases") {
        root.missing("cases", FORM);
        return Vec::new();
    }
    let cases = root.sections("cases", FORM);
    let written = root.item("cases").and_then(|item| root.document().list(item.node()));
    match written.map(<[_]>::len) {
        Some(0) => root.error("cases", "the suite has no cases", FORM),
        Some(count) if count > MOST_CASES => {
            root.error(
                "cases",
                format!("the suite has {count} cases; the limit is {MOST_CASES}"),
                "split it",
            );
        }
        _ => {}
    }
    cases.iter().map(CaseSpec::read).collect()
}
