//! Finds the cycles of a graph: its strongly connected components of more than one module (Tarjan, "Depth-first search
//! and linear graph algorithms", SIAM Journal on Computing 1(2), 1972).

use std::collections::BTreeMap;

use super::Graph;

/// Returns the modules of each cycle, sorted by name.
pub(super) fn cycles(graph: &Graph) -> Vec<Vec<String>> {
    let mut search = Search { graph, visited: BTreeMap::new(), stack: Vec::new(), cycles: Vec::new() };
    for module in graph.keys() {
        if !search.visited.contains_key(module.as_str()) {
            search.visit(module);
        }
    }
    search.cycles
}

struct Search<'a> {
    graph: &'a Graph,
    /// When each module was met, and the earliest module that it reaches while both are on the stack.
    visited: BTreeMap<&'a str, (usize, usize)>,
    stack: Vec<&'a str>,
    cycles: Vec<Vec<String>>,
}

impl<'a> Search<'a> {
    fn visit(&mut self, module: &'a str) -> usize {
        let number = self.visited.len();
        self.visited.insert(module, (number, number));
        self.stack.push(module);
        let mut lowest = number;
        for used in self.graph.get(module).into_iter().flatten() {
            lowest = match self.visited.get(used.as_str()) {
                None => lowest.min(self.visit(used)),
                Some((met, _)) if self.stack.contains(&used.as_str()) => lowest.min(*met),
                Some(_) => lowest,
            };
        }
        self.visited.insert(module, (number, lowest));
        if lowest == number
            && let Some(start) = self.stack.iter().position(|on_stack| *on_stack == module)
        {
            let mut cycle: Vec<String> =
                self.stack.split_off(start).into_iter().map(ToOwned::to_owned).collect();
            if cycle.len() > 1 {
                cycle.sort();
                self.cycles.push(cycle);
            }
        }
        lowest
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::graph, *};

    #[test]
    fn a_chain_has_no_cycle() {
        let chain = graph(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])]);
        assert_eq!(cycles(&chain), Vec::<Vec<String>>::new());
    }

    #[test]
    fn finds_indirect_cycles_and_excludes_dependents() {
        let cycle = graph(&[("a", &["b"]), ("b", &["c"]), ("c", &["b", "d"]), ("d", &[]), ("e", &["a"])]);
        assert_eq!(cycles(&cycle), [["b", "c"]]);
    }
}
