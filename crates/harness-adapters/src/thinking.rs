//! Thinking levels, and their names for each model.

use harness_core::port::ThinkingLevel;

/// The levels that a model knows, and its words for them.
///
/// A request may say itself how hard to think
/// ([`ModelRequest::thinking`](harness_core::port::ModelRequest::thinking)). That goes before what the adapter and
/// the agent's settings say, and the nearest level that the model knows is asked for:
///
/// | endpoint | sent | for `off` |
/// |---|---|---|
/// | OpenRouter, chat or Responses | `reasoning.effort` | `none` |
/// | other chat completions | `reasoning_effort` | nothing, or the model's own word |
/// | other Responses | `reasoning.effort` | nothing, or the model's own word |
/// | Messages | `thinking.budget_tokens`: 1,024, 2,048, 8,192, 16,384 and 32,768 from `minimal` to `xhigh`, or the model's own word if that is a number; within `max_tokens` if that is set | `thinking` is `disabled` |
///
/// Other adapters, and recordings, leave it to what they stand for. A recorded request holds the level where one
/// was set.
///
/// ```
/// use harness_adapters::ThinkingLevels;
/// use harness_core::port::ThinkingLevel;
///
/// let levels = ThinkingLevels::reasoning().without(ThinkingLevel::Minimal);
/// assert_eq!(levels.clamp(ThinkingLevel::Minimal), ThinkingLevel::Low);
/// assert_eq!(levels.clamp(ThinkingLevel::XHigh), ThinkingLevel::High);
/// assert_eq!(ThinkingLevels::none().clamp(ThinkingLevel::High), ThinkingLevel::Off);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThinkingLevels(Vec<(ThinkingLevel, Word)>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    Usual,
    Own(String),
}

impl ThinkingLevels {
    /// A model that does not reason: only [`ThinkingLevel::Off`].
    pub fn none() -> Self {
        Self(vec![(ThinkingLevel::Off, Word::Usual)])
    }

    /// A model that reasons: all levels but [`ThinkingLevel::XHigh`], which few models know.
    pub fn reasoning() -> Self {
        let levels = ThinkingLevel::ALL.into_iter().filter(|level| *level != ThinkingLevel::XHigh);
        Self(levels.map(|level| (level, Word::Usual)).collect())
    }

    /// Adds a level under the model's own name for it.
    #[must_use]
    pub fn with(self, level: ThinkingLevel, word: impl Into<String>) -> Self {
        let mut levels = self.without(level).0;
        levels.push((level, Word::Own(word.into())));
        levels.sort_by_key(|(level, _)| *level);
        Self(levels)
    }

    /// Removes a level.
    #[must_use]
    pub fn without(mut self, level: ThinkingLevel) -> Self {
        self.0.retain(|(known, _)| *known != level);
        self
    }

    /// The level to ask for: this one, else the next higher one that the model knows, else the next lower
    /// one, else [`ThinkingLevel::Off`].
    pub fn clamp(&self, level: ThinkingLevel) -> ThinkingLevel {
        let known = || self.0.iter().map(|(known, _)| *known);
        let higher = known().filter(|known| *known >= level).min();
        higher.or_else(|| known().max()).unwrap_or(ThinkingLevel::Off)
    }

    /// The model's word for the nearest level to this one, where it has one.
    pub fn word(&self, level: ThinkingLevel) -> Option<&str> {
        let level = self.clamp(level);
        let (_, word) = self.0.iter().find(|(known, _)| *known == level)?;
        Some(match word {
            Word::Usual => level.as_str(),
            Word::Own(word) => word,
        })
    }

    /// Effort to request: the name of the nearest level. For [`ThinkingLevel::Off`] without a name,
    /// a router receives `none` and others nothing, because no single name disables reasoning
    /// everywhere.
    #[cfg(feature = "http")]
    pub(crate) fn effort(&self, level: ThinkingLevel, routed: bool) -> Option<&str> {
        let is_plain_off =
            self.clamp(level) == ThinkingLevel::Off && self.0.contains(&(ThinkingLevel::Off, Word::Usual));
        match (is_plain_off, routed) {
            (true, true) => Some("none"),
            (true, false) => None,
            (false, _) => self.word(level),
        }
    }

    /// The setting of a request that asks for the nearest level.
    #[cfg(feature = "http")]
    pub(crate) fn setting(
        &self,
        level: ThinkingLevel,
        routed: bool,
    ) -> Option<(&'static str, harness_core::Json)> {
        use harness_core::Json;

        let effort = Json::string(self.effort(level, routed)?);
        if !routed {
            return Some(("reasoning_effort", effort));
        }
        Some(("reasoning", Json::parse(&format!("{{\"effort\":{effort}}}")).ok()?))
    }
}

#[cfg(test)]
#[cfg(feature = "http")]
mod tests {
    use super::*;

    #[track_caller]
    fn check_clamp(levels: &ThinkingLevels, expected: [&str; 6]) {
        let clamped = ThinkingLevel::ALL.map(|level| levels.clamp(level).as_str());
        assert_eq!(clamped, expected);
    }

    #[test]
    fn a_level_is_taken_from_above_then_from_below() {
        use ThinkingLevel::{High, Low, Minimal, Off, XHigh};
        check_clamp(&ThinkingLevels::none(), ["off"; 6]);
        check_clamp(&ThinkingLevels::reasoning(), ["off", "minimal", "low", "medium", "high", "high"]);
        check_clamp(
            &ThinkingLevels::reasoning().with(XHigh, "max").without(Minimal).without(Low),
            ["off", "medium", "medium", "medium", "high", "xhigh"],
        );
        let only_high = ThinkingLevels::none().without(Off).with(High, "on");
        check_clamp(&only_high, ["high"; 6]);
        check_clamp(&only_high.without(High), ["off"; 6]);
    }

    #[track_caller]
    fn check_setting(levels: &ThinkingLevels, level: &str, routed: &str, direct: &str) {
        let level = ThinkingLevel::parse(level).unwrap();
        for (is_routed, expected) in [(true, routed), (false, direct)] {
            let setting = levels.setting(level, is_routed);
            let told = setting.map_or("nothing".to_owned(), |(key, value)| format!("{key}: {value}"));
            assert_eq!(told, expected);
        }
    }

    #[test]
    fn routers_and_endpoints_are_asked_in_their_own_words() {
        let levels = ThinkingLevels::reasoning();
        check_setting(&levels, "low", r#"reasoning: {"effort":"low"}"#, r#"reasoning_effort: "low""#);
        check_setting(&levels, "xhigh", r#"reasoning: {"effort":"high"}"#, r#"reasoning_effort: "high""#);
        check_setting(&levels, "off", r#"reasoning: {"effort":"none"}"#, "nothing");
        let own = levels.with(ThinkingLevel::XHigh, "max");
        check_setting(&own, "xhigh", r#"reasoning: {"effort":"max"}"#, r#"reasoning_effort: "max""#);
        let never_off = ThinkingLevels::none().without(ThinkingLevel::Off);
        check_setting(&never_off, "high", "nothing", "nothing");
    }

    #[test]
    fn every_word_is_its_level() {
        for level in ThinkingLevel::ALL {
            assert_eq!(ThinkingLevel::parse(level.as_str()), Some(level));
        }
        assert_eq!(ThinkingLevel::parse("hard"), None);
    }
}
