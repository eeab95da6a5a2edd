//! What a source file defines, imports and names.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree, Visibility};

/// A path in a source file: `crate::keys::KeyId` in its parts.
pub(super) type Parts = Vec<String>;

/// One `use`.
pub(super) struct Use {
    /// What is imported; the last part is `*` for all of a module.
    pub(super) path: Parts,
    /// What it is called here.
    pub(super) name: String,
    /// Whether it is passed on.
    pub(super) is_re_export: bool,
}

/// The names of one file.
#[derive(Default)]
pub(super) struct Names {
    /// The items that it defines.
    pub(super) defined: BTreeSet<String>,
    /// What it imports.
    pub(super) uses: Vec<Use>,
    /// The paths in its code.
    pub(super) paths: BTreeSet<Parts>,
}

impl Names {
    /// Reads a file.
    pub(super) fn of(text: &str) -> Result<Self, syn::Error> {
        let file = syn::parse_file(text)?;
        let mut names = Self::default();
        names.defined.extend(file.items.iter().filter_map(defined));
        names.visit_file(&file);
        Ok(names)
    }

    fn import(&mut self, before: &[String], tree: &UseTree, is_re_export: bool) {
        let with = |name: String| before.iter().cloned().chain([name]).collect::<Parts>();
        match tree {
            UseTree::Path(path) => self.import(&with(path.ident.to_string()), &path.tree, is_re_export),
            UseTree::Group(group) => group.items.iter().for_each(|item| self.import(before, item, is_re_export)),
            UseTree::Glob(_) => self.uses.push(Use { path: with("*".into()), name: "*".into(), is_re_export }),
            UseTree::Name(name) if name.ident == "self" => {
                let name = before.last().cloned().unwrap_or_default();
                self.uses.push(Use { path: before.to_vec(), name, is_re_export });
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                self.uses.push(Use { path: with(name.clone()), name, is_re_export });
            }
            UseTree::Rename(renamed) if renamed.ident == "self" => {
                self.uses.push(Use { path: before.to_vec(), name: renamed.rename.to_string(), is_re_export });
            }
            UseTree::Rename(renamed) => {
                let (path, name) = (with(renamed.ident.to_string()), renamed.rename.to_string());
                self.uses.push(Use { path, name, is_re_export });
            }
        }
    }

    /// The paths in a macro's text, which is not parsed: parts with `::` between them.
    fn scan(&mut self, text: &str) {
        let spaced = text.replace(":: ", "::").replace(" ::", "::");
        let is_part = |character: char| character.is_alphanumeric() || matches!(character, '_' | ':');
        for path in spaced.split(|character| !is_part(character)).filter(|path| path.contains("::")) {
            self.paths.insert(path.split("::").map(str::to_owned).collect());
        }
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.import(&[], &item.tree, !matches!(item.vis, Visibility::Inherited));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.paths.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.scan(&called.tokens.to_string());
        visit::visit_macro(self, called);
    }

    // What a file's visibility says is where it is seen, not what it needs.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

fn defined(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Mod(item) if item.content.is_some() => &item.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether an item is compiled for tests alone.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
    })
}
