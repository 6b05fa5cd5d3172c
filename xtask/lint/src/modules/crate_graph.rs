//! Which file of a crate uses definitions of which other file.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use syn::{Attribute, Item, ItemMod, UseTree, Visibility, visit::Visit};

use super::{Graph, ROOT};

/// How many re-exports are followed from a name to its definition.
const MAX_REEXPORTS: usize = 16;

/// A module's path from the root of its crate. The root's own path is empty.
type ModulePath = Vec<String>;

/// The modules of a crate without its tests.
pub(super) struct CrateGraph {
    modules: BTreeMap<ModulePath, Module>,
}

/// The contents of a file, or of a module inside one.
#[derive(Default)]
struct Module {
    /// The names that it defines itself.
    defined: BTreeSet<String>,
    /// The names that it imports or re-exports, and their paths.
    imported: BTreeMap<String, ModulePath>,
    /// The modules from which it imports or re-exports everything.
    globs: Vec<ModulePath>,
    /// Every path that it mentions.
    mentioned: Vec<ModulePath>,
}

impl CrateGraph {
    /// Reads the crate with this source folder, from its `lib.rs` on.
    pub(super) fn read(source: &Path) -> Result<Self> {
        let mut graph = Self { modules: BTreeMap::new() };
        graph.read_file(&source.join("lib.rs"), source, &[])?;
        Ok(graph)
    }

    /// Reads a file, and those of the modules it declares below `folder`.
    fn read_file(&mut self, file: &Path, folder: &Path, path: &[String]) -> Result<()> {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let parsed = syn::parse_file(&text).with_context(|| format!("cannot parse {}", file.display()))?;
        self.read_items(&parsed.items, folder, path)
    }

    fn read_items(&mut self, items: &[Item], folder: &Path, path: &[String]) -> Result<()> {
        let mut reader = Reader { path, module: Module::default() };
        let mut children = Vec::new();
        for item in items {
            match item {
                Item::Mod(child) if is_for_tests(&child.attrs) || has_other_path(&child.attrs) => {}
                Item::Mod(child) => children.push(child),
                _ => reader.visit_item(item),
            }
        }
        self.modules.insert(path.to_vec(), reader.module);
        children.into_iter().try_for_each(|child| self.read_child(child, folder, path))
    }

    fn read_child(&mut self, child: &ItemMod, folder: &Path, parent: &[String]) -> Result<()> {
        let name = child.ident.to_string();
        let path = [parent, std::slice::from_ref(&name)].concat();
        let folder = folder.join(&name);
        if let Some((_, items)) = &child.content {
            return self.read_items(items, &folder, &path);
        }
        let beside: PathBuf = folder.with_extension("rs");
        let file = if beside.is_file() { beside } else { folder.join("mod.rs") };
        self.read_file(&file, &folder, &path)
    }

    /// Returns each module with the modules that define what it mentions.
    pub(super) fn edges(&self) -> Graph {
        self.edges_through(MAX_REEXPORTS)
    }

    /// Returns each module with the modules that the paths in it lead to. These may only re-export what is named there, but
    /// that is where a reader looks for it.
    pub(super) fn paths(&self) -> Graph {
        self.edges_through(0)
    }

    fn edges_through(&self, reexports: usize) -> Graph {
        let name = |path: &ModulePath| if path.is_empty() { ROOT.to_owned() } else { path.join("::") };
        let mut graph = Graph::new();
        for (path, module) in &self.modules {
            let used = module.mentioned.iter().filter_map(|mentioned| self.definition(mentioned, reexports));
            let used = used.filter(|used| used != path);
            graph.insert(name(path), used.map(|used| name(&used)).collect());
        }
        graph
    }

    /// Returns the module that a path from the root leads to, or that defines what the path names.
    fn definition(&self, path: &[String], reexports: usize) -> Option<ModulePath> {
        let depth = (0..=path.len()).rev().find(|depth| self.modules.contains_key(&path[..*depth]))?;
        let (module, rest) = path.split_at(depth);
        let Some(name) = rest.first() else { return Some(module.to_vec()) };
        let here = &self.modules[module];
        if here.defined.contains(name) || reexports == 0 {
            return Some(module.to_vec());
        }
        let found = here.imported.get(name).map(|target| [target, &rest[1..]].concat());
        if let Some(found) = found {
            return self.definition(&found, reexports - 1);
        }
        let of_glob = |glob: &ModulePath| {
            let target = [glob, rest].concat();
            let defined_in = self.definition(&target, reexports - 1)?;
            self.modules[&defined_in].defined.contains(name).then_some(defined_in)
        };
        Some(here.globs.iter().find_map(of_glob).unwrap_or_else(|| module.to_vec()))
    }
}

/// Reads the items of one module.
struct Reader<'a> {
    path: &'a [String],
    module: Module,
}

impl Reader<'_> {
    /// Returns the path from the root of the crate, or `None` if there is no such path. A path into another crate comes
    /// out as one into this module.
    fn absolute(&self, segments: &[String]) -> Option<ModulePath> {
        let (first, rest) = segments.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([self.path, rest].concat()),
            "super" => {
                let ups = segments.iter().take_while(|segment| *segment == "super").count();
                let base = self.path.len().checked_sub(ups)?;
                Some([&self.path[..base], &segments[ups..]].concat())
            }
            // A module declared here, or another crate. Which of the two shows once all files have been read.
            _ => Some([self.path, segments].concat()),
        }
    }

    fn read_use(&mut self, tree: &UseTree, prefix: &mut Vec<String>) {
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.read_use(&path.tree, prefix);
                prefix.pop();
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.read_use(tree, prefix)),
            UseTree::Name(name) => self.import(prefix, &name.ident.to_string(), &name.ident.to_string()),
            UseTree::Rename(rename) => {
                self.import(prefix, &rename.ident.to_string(), &rename.rename.to_string());
            }
            UseTree::Glob(_) => {
                if let Some(path) = self.absolute(prefix) {
                    self.module.globs.push(path.clone());
                    self.module.mentioned.push(path);
                }
            }
        }
    }

    fn import(&mut self, prefix: &[String], name: &str, alias: &str) {
        let is_itself = name == "self";
        let mut segments = prefix.to_vec();
        segments.extend((!is_itself).then(|| name.to_owned()));
        let alias = if is_itself { segments.last().cloned().unwrap_or_default() } else { alias.to_owned() };
        if let Some(path) = self.absolute(&segments) {
            self.module.mentioned.push(path.clone());
            self.module.imported.insert(alias, path);
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let (name, attributes) = match item {
            Item::Const(it) => (Some(&it.ident), &it.attrs),
            Item::Enum(it) => (Some(&it.ident), &it.attrs),
            Item::Fn(it) => (Some(&it.sig.ident), &it.attrs),
            Item::Static(it) => (Some(&it.ident), &it.attrs),
            Item::Struct(it) => (Some(&it.ident), &it.attrs),
            Item::Trait(it) => (Some(&it.ident), &it.attrs),
            Item::Type(it) => (Some(&it.ident), &it.attrs),
            Item::Union(it) => (Some(&it.ident), &it.attrs),
            Item::Impl(it) => (None, &it.attrs),
            Item::Use(it) => (None, &it.attrs),
            _ => return syn::visit::visit_item(self, item),
        };
        if is_for_tests(attributes) {
            return;
        }
        self.module.defined.extend(name.map(ToString::to_string));
        syn::visit::visit_item(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_for_tests(&item.attrs) {
            self.read_use(&item.tree, &mut Vec::new());
        }
    }

    fn visit_item_mod(&mut self, _: &'ast ItemMod) {}

    /// Skips paths such as that of `pub(in path)`: permitting a module to use something is no use of the module.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if segments.len() > 1
            && let Some(absolute) = self.absolute(&segments)
        {
            self.module.mentioned.push(absolute);
        }
        syn::visit::visit_path(self, path);
    }
}

/// Whether something is compiled for tests only.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|it| it.path().is_ident("cfg")).any(|it| {
        let text = it.meta.require_list().map(|list| list.tokens.to_string()).unwrap_or_default();
        text.contains("test") && !text.contains("not")
    })
}

/// True if a module names its file (`#[path]`). Such a module stands in for one that is left out.
fn has_other_path(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|it| it.path().is_ident("path"))
}
