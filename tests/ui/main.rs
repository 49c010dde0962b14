//! What the compiler refuses, and in which words: the list of what cannot be done by mistake.
//!
//! `TRYBUILD=overwrite cargo test -p fenced-tests --test ui` writes the texts anew.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

#[rustversion::attr(
    not(stable(1.95.0)),
    ignore = "the texts are those of Rust 1.95.0: run `cargo +1.95.0 test -p fenced-tests --test ui`"
)]
#[test]
fn misuse_is_refused_in_plain_words() {
    trybuild::TestCases::new().compile_fail("ui/*/*.rs");
}

/// The files of all cases that end in `extension`, with their text.
fn files(extension: &str) -> BTreeMap<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("ui");
    let folders = ["guard", "function", "args", "lock"].map(|folder| root.join(folder));
    let files = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap());
    files
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .map(|path| (path.clone(), fs::read_to_string(path).unwrap()))
        .collect()
}

#[test]
fn every_case_says_what_was_wanted() {
    let cases = files("rs");
    assert!(cases.len() >= 45, "{}", cases.len());
    for (path, case) in cases {
        assert!(case.starts_with("// Wanted: "), "{}", path.display());
        assert!(path.with_extension("stderr").exists(), "{}", path.display());
    }
}

#[test]
fn no_text_speaks_of_what_the_user_did_not_write() {
    for (path, text) in files("stderr") {
        for word in [
            "__private",
            "async closure",
            "`async` closure",
            "$RUST",
            "warning:",
        ] {
            assert!(!text.contains(word), "{}: {word}", path.display());
        }
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let Some(attribute) = line.find("#[fenced") else {
                continue;
            };
            let underlined = lines.peek().is_some_and(|below| {
                below
                    .get(attribute..)
                    .is_some_and(|below| below.starts_with(['^', '-']))
            });
            assert!(!underlined, "{} underlines the attribute", path.display());
        }
    }
}

#[test]
fn readers_are_led_to_the_list() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for page in ["README.md", "src/guide/attribute.md", "src/guide/limits.md"] {
        let text = fs::read_to_string(root.join(page)).unwrap();
        assert!(text.contains("/tree/main/tests/ui)"), "{page}");
    }
}

/// What is shown of a case without its name and its place in the file.
fn shown(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.contains("--> "));
    lines
        .map(|line| line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' '))
        .collect()
}

#[test]
fn no_two_cases_show_one_mistake() {
    let mut told = BTreeMap::new();
    for (path, text) in files("stderr") {
        if let Some(other) = told.insert(shown(&text), path.clone()) {
            panic!("{} and {} tell the same", path.display(), other.display());
        }
    }
}
