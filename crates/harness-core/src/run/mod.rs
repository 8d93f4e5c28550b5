//! turn
use crate::machine::*;
use crate::outcome::End;
use crate::time::Time;
use crate::transcript::Plan;
/// x
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct RunState;
/// x
#[derive(Debug, Default)]
pub struct RunSpec {
    /// x
    pub prepare_each_iteration: bool,
}
impl Phase for RunState {
    type Spec = RunSpec;
    fn step(&mut self, _: &RunSpec, _: &mut Cx<'_>, _: Option<Pending>, _: Input) -> Option<End> {
        None
    }
    fn reissue(&self, _: &RunSpec, _: &Cx<'_>, _: Pending) -> Option<Op> {
        None
    }
    fn wake_at(&self, _: &Shared) -> Option<Time> {
        None
    }
    fn plan(&self) -> Option<&Plan> {
        None
    }
}
