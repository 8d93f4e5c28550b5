//! What a prompt becomes.

use agent_client_protocol::v1::schema::{
    AudioContent, BlobResourceContents, ContentBlock, EmbeddedResource, EmbeddedResourceResource,
    ImageContent, ResourceLink, StopReason, TextResourceContents,
};
use harness::runtime::skill::{Skill, SkillSet};
use harness::runtime::template::{PromptTemplate, TemplateSet};

use crate::support::{Scripted, Step, config, threads, with_editor};

/// The message that the model is sent, as JSON without what is not said; or why there is none.
async fn sent(blocks: Vec<ContentBlock>) -> Result<String, String> {
    let model = Scripted::new([Step::Say("ok")]);
    let mut config = config(&model);
    config.templates = TemplateSet::new([PromptTemplate::new("fix", "Fix issue $1.")]);
    config.skills = SkillSet::new([Skill::new("review", "reviews", "Look closely.")]);
    let mut sent = Err(String::new());
    with_editor(threads(config), [], async |editor| {
        let session = editor.session().await;
        sent = match editor.prompt_blocks(&session, blocks).await {
            Ok(stopped) => {
                assert_eq!(stopped, StopReason::EndTurn);
                let requests = model.asked.lock();
                let message = requests[0].view.last().unwrap().clone();
                Ok(serde_json::to_value(&*message).unwrap()["content"].to_string())
            }
            Err(error) => Err(format!("{} {}", error.code.value(), error.data.unwrap_or_default())),
        };
    })
    .await;
    sent
}

fn text(text: &str) -> ContentBlock {
    ContentBlock::from(text.to_owned())
}

fn embedded(resource: EmbeddedResourceResource) -> ContentBlock {
    ContentBlock::Resource(EmbeddedResource::new(resource))
}

#[tokio::test]
async fn all_blocks_are_one_message() {
    let blocks = vec![
        text("What is this?"),
        ContentBlock::Image(ImageContent::new("aGk=", "image/png")),
        ContentBlock::ResourceLink(ResourceLink::new("main.rs", "file:///desk/main.rs")),
        embedded(EmbeddedResourceResource::TextResourceContents(TextResourceContents::new(
            "fn main() {}",
            "file:///desk/main.rs",
        ))),
        embedded(EmbeddedResourceResource::BlobResourceContents(
            BlobResourceContents::new("aGk=", "file:///desk/a.png").mime_type("image/png".to_owned()),
        )),
    ];
    let sent = sent(blocks).await.unwrap();
    let blocks: Vec<serde_json::Value> = serde_json::from_str(&sent).unwrap();
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    assert_eq!(
        texts,
        [
            "What is this?",
            "[main.rs](file:///desk/main.rs)",
            "<resource uri=\"file:///desk/main.rs\">\nfn main() {}\n</resource>",
        ]
    );
    let images: Vec<usize> = (0..blocks.len()).filter(|at| blocks[*at]["mimeType"] == "image/png").collect();
    assert_eq!(images, [1, 4]);
}

#[tokio::test]
async fn commands_are_expanded() {
    assert!(sent(vec![text("/fix 7")]).await.unwrap().contains("Fix issue 7."));
    assert!(sent(vec![text("/skill:review main.rs")]).await.unwrap().contains("Look closely."));
    assert!(sent(vec![text("/unknown 7")]).await.unwrap().contains("/unknown 7"));
}

#[tokio::test]
async fn what_cannot_be_read_is_refused() {
    let nothing = sent(Vec::new()).await.unwrap_err();
    assert_eq!(nothing, r#"-32602 "a prompt needs at least one block""#);
    let sound = sent(vec![text("hear"), ContentBlock::Audio(AudioContent::new("aGk=", "audio/wav"))]).await;
    assert!(sound.unwrap_err().contains("block 1 of the prompt"));
    let blob =
        EmbeddedResourceResource::BlobResourceContents(BlobResourceContents::new("aGk=", "file:///a.zip"));
    assert!(sent(vec![embedded(blob)]).await.unwrap_err().contains("`file:///a.zip`"));
}

#[tokio::test]
async fn what_may_be_typed_is_told() {
    let model = Scripted::new([]);
    let mut config = config(&model);
    config.templates =
        TemplateSet::new([PromptTemplate::new("fix", "$1"), PromptTemplate::new("fix", "two")]);
    config.skills = SkillSet::new([Skill::new("review", "reviews", "Look closely.")]);
    with_editor(threads(config), [], async |editor| {
        let session = editor.session().await;
        assert_eq!(editor.until(&session, "commands").await, "commands /fix /skill:review");
    })
    .await;
}
