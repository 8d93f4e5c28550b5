//! Compaction as a descriptor or a command line names it.

use std::sync::Arc;

use harness_core::port::DynModel;
use harness_descriptor::{CompactionPreset, CompactionSetting};
use harness_memory::compact::{CompactionPolicy, ContextCompactor, ModelSummarizer, SummaryModel};

/// The policy that a setting names.
///
/// ```
/// use harness::compaction_policy;
/// use harness::descriptor::CompactionSetting;
/// use harness::memory::compact::CompactionPolicy;
///
/// let policy = compaction_policy(CompactionSetting::new("ladder".parse()?, 200_000));
/// assert_eq!(policy, CompactionPolicy::ladder(200_000));
/// # Ok::<(), String>(())
/// ```
pub fn compaction_policy(setting: CompactionSetting) -> CompactionPolicy {
    let CompactionSetting { preset, window, .. } = setting;
    let share = |thousandths: u64| window.saturating_mul(thousandths) / 1_000;
    let mut policy = match preset {
        CompactionPreset::Summarize => CompactionPolicy::summarize(window),
        CompactionPreset::Truncate { above, to, .. } => {
            let above = above.unwrap_or_else(|| share(800));
            CompactionPolicy::truncate(above, to.unwrap_or_else(|| share(500)).min(above))
        }
        CompactionPreset::SlidingWindow { groups, .. } => CompactionPolicy::sliding_window(groups),
        CompactionPreset::Selective { calls } => CompactionPolicy::selective(calls),
        CompactionPreset::ToolResults { calls } => CompactionPolicy::tool_results(calls),
        CompactionPreset::Ladder | _ => CompactionPolicy::ladder(window),
    };
    policy.window = window;
    if let CompactionPreset::Truncate { keep_first_prompt, .. }
    | CompactionPreset::SlidingWindow { keep_first_prompt, .. } = preset
    {
        policy.keep_first_prompt = keep_first_prompt;
    }
    policy
}

/// The compactor of a setting; the model writes the summaries.
pub(crate) fn compactor(setting: CompactionSetting, model: &Arc<dyn DynModel>) -> ContextCompactor {
    let summarizer = ModelSummarizer::new(SummaryModel::new(Arc::clone(model), setting.window));
    ContextCompactor::new(compaction_policy(setting)).with_summarizer(summarizer)
}

#[cfg(test)]
mod tests {
    use harness_memory::compact::{Rung, Target, Trigger};

    use super::*;

    #[track_caller]
    fn check(name: &str, rungs: &[Rung], trigger: Trigger, target: Target) {
        let setting = CompactionSetting::new(name.parse().unwrap(), 10_000);
        let policy = compaction_policy(setting);
        assert_eq!((&*policy.ladder, policy.trigger, policy.target), (rungs, trigger, target));
        assert!(policy.keep_first_prompt && policy.window == 10_000, "{name}: {policy:?}");
    }

    #[test]
    fn each_name_is_a_policy_that_keeps_the_task() {
        use Rung::{Clear, Collapse, Drop, Externalize, Select, Summarize, Truncate};
        let ladder = [Clear, Collapse, Externalize, Summarize, Drop];
        check("ladder", &ladder, Trigger::Share(800), Target::Slack(100));
        check("summarize", &[Summarize], Trigger::Reserve(16_384), Target::Slack(100));
        check("truncate", &[Truncate], Trigger::Tokens(8_000), Target::Tokens(5_000));
        check("sliding-window", &[Truncate], Trigger::Always, Target::Everything);
        check("selective", &[Select], Trigger::Always, Target::Everything);
        check("tool-results", &[Collapse], Trigger::Always, Target::Everything);
        assert_eq!(CompactionPreset::names().count(), 6);
    }

    #[test]
    fn settings_are_those_of_the_policy() {
        let preset = CompactionPreset::Truncate { above: Some(900), to: None, keep_first_prompt: false };
        let policy = compaction_policy(CompactionSetting::new(preset, 10_000));
        assert_eq!((policy.trigger, policy.target), (Trigger::Tokens(900), Target::Tokens(900)));
        assert!(!policy.keep_first_prompt);
        let preset = CompactionPreset::Selective { calls: 2 };
        let policy = compaction_policy(CompactionSetting::new(preset, 10_000));
        assert_eq!(policy.recency, harness_memory::compact::Recency::of_calls(2));
    }
}
