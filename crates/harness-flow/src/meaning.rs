//! Branches by meaning.

use std::sync::Arc;

use harness_host::DynEmbedder;
use parking_lot::Mutex;

use super::step::Step;
use super::until::text_of;

/// Cosine similarity of two vectors, from -1 to 1; 0 when one is the zero vector.
pub(super) fn likeness(a: &[f32], b: &[f32]) -> Result<f32, String> {
    if a.len() != b.len() {
        return Err(format!("cannot compare vectors of {} and {} dimensions", a.len(), b.len()));
    }
    let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let lengths = (product(a, a) * product(b, b)).sqrt();
    Ok(if lengths > 0.0 { product(a, b) / lengths } else { 0.0 })
}

/// Branch to the step whose label is most similar in meaning to the input. Labels are embedded once per router.
#[must_use]
#[derive(derive_more::Debug)]
pub struct MeaningRouter {
    #[debug(skip)]
    embedder: Arc<dyn DynEmbedder>,
    cases: Vec<(String, Step)>,
    #[debug(skip)]
    otherwise: Option<Step>,
    threshold: f32,
    #[debug(skip)]
    labels: Mutex<Option<Labels>>,
}

type Labels = Arc<Vec<Vec<f32>>>;

impl MeaningRouter {
    /// Creates a router without cases, with a threshold of 0.7. Unmatched inputs pass through.
    pub fn new(embedder: Arc<dyn DynEmbedder>) -> Self {
        Self { embedder, cases: Vec::new(), otherwise: None, threshold: 0.7, labels: Mutex::new(None) }
    }

    /// Adds a label with its step.
    pub fn case(mut self, label: impl Into<String>, step: Step) -> Self {
        self.cases.push((label.into(), step));
        self
    }

    /// Sets the step for unmatched inputs.
    pub fn otherwise(mut self, step: Step) -> Self {
        self.otherwise = Some(step);
        self
    }

    /// Sets the minimum similarity of a match.
    pub fn threshold(mut self, threshold: f32) -> Self {
        self.threshold = threshold;
        self
    }

    /// Converts the router into a branch step.
    pub fn into_step(self, id: impl Into<Arc<str>>) -> Step {
        let router = Arc::new(self);
        Step::branch(id, move |input, _| {
            let router = Arc::clone(&router);
            async move { router.choose(&text_of(&input)).await }
        })
    }

    async fn choose(&self, text: &str) -> Result<Option<Step>, String> {
        let labels = self.labels().await?;
        let asked = self.embedder.embed_boxed(&[text]).await.map_err(|error| error.to_string())?;
        let asked = asked.first().ok_or("a vector was expected")?;
        let mut best: Option<(f32, &Step)> = None;
        for (label, (_, step)) in labels.iter().zip(&self.cases) {
            let likeness = likeness(asked, label)?;
            if likeness >= self.threshold && best.is_none_or(|(so_far, _)| likeness > so_far) {
                best = Some((likeness, step));
            }
        }
        Ok(best.map(|(_, step)| step).or(self.otherwise.as_ref()).cloned())
    }

    async fn labels(&self) -> Result<Labels, String> {
        let known = || self.labels.lock();
        if let Some(labels) = &*known() {
            return Ok(Arc::clone(labels));
        }
        let texts: Vec<&str> = self.cases.iter().map(|(label, _)| &**label).collect();
        let labels = Arc::new(self.embedder.embed_boxed(&texts).await.map_err(|error| error.to_string())?);
        *known() = Some(Arc::clone(&labels));
        Ok(labels)
    }
}
