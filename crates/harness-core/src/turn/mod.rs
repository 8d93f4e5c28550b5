//! turn
use crate::machine::*;
use crate::outcome::End;
use crate::time::Time;
use crate::transcript::Plan;
/// x
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct TurnState;
/// x
#[derive(Debug, Default)]
pub struct TurnSpec {
    /// x
    pub prepare_each_iteration: bool,
}
impl Phase for TurnState {
    type Spec = TurnSpec;
    fn step(&mut self, _: &TurnSpec, _: &mut Cx<'_>, _: Option<Pending>, _: Input) -> Option<End> {
        None
    }
    fn reissue(&self, _: &TurnSpec, _: &Cx<'_>, _: Pending) -> Option<Op> {
        None
    }
    fn wake_at(&self, _: &Shared) -> Option<Time> {
        None
    }
    fn plan(&self) -> Option<&Plan> {
        None
    }
}
