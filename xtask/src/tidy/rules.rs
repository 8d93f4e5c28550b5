//! All rules, applied.

use super::tree::Tree;
use super::{arrows, deviations, examples, faults, laws, links, manifests, modules, names, order, text};
use crate::fault::{Fault, Result};
use crate::repo::{Workspace, root};

/// Applies every rule; prints each problem on a line.
pub(crate) fn run() -> Result<()> {
    report(&problems()?)
}

/// Applies the rule of links alone.
pub(crate) fn check_links() -> Result<()> {
    report(&links::problems(&Tree::read(root())?))
}

fn report(problems: &[String]) -> Result<()> {
    for problem in problems {
        println!("{problem}");
    }
    match problems.len() {
        0 => Ok(()),
        count => Err(Fault::new(format!("{count} problems in the tree"))),
    }
}

fn problems() -> Result<Vec<String>> {
    let tree = Tree::read(root())?;
    let workspace = Workspace::load()?;
    let rules = [
        arrows::problems(&workspace.packages, &tree),
        deviations::problems(&tree),
        examples::problems(&tree),
        faults::problems(&tree),
        laws::problems(&tree),
        links::problems(&tree),
        order::problems(&tree),
        manifests::problems(&workspace.packages, &tree),
        modules::problems(&tree),
        names::problems(&tree),
        text::problems(&tree),
    ];
    Ok(rules.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_tidy() {
        assert_eq!(problems().unwrap(), Vec::<String>::new());
    }
}
