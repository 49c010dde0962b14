//! What a contender has to do, given who else stands in its directory. No I/O.

use crate::name::{Contender, Kind};

/// Where a contender stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Standing<'a> {
    /// Nobody has to go first.
    First,
    /// Somebody has.
    Behind(Ahead<'a>),
    /// The contender itself is not in the list.
    Gone,
    /// The numbers give no order.
    Exhausted,
}

/// Who has to go first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ahead<'a> {
    /// The last of them: the one to watch.
    pub(crate) predecessor: &'a str,
    pub(crate) count: usize,
    /// Whether the predecessor's end alone makes the contender the first.
    pub(crate) decides: bool,
}

/// Where the node `own` stands among the `children` of its directory.
pub(crate) fn standing<'a>(children: &'a [String], own: &str) -> Standing<'a> {
    let contenders = || children.iter().filter_map(|name| Contender::parse(name));
    let Some(me) = contenders().find(|it| it.name == own) else {
        return Standing::Gone;
    };
    let ties = |it: &Contender<'_>| it.sequence == me.sequence && it.name != me.name;
    let is_exhausted = me.sequence >= i64::from(i32::MAX);
    if is_exhausted || contenders().any(|it| it.sequence < 0 || ties(&it)) {
        return Standing::Exhausted;
    }
    let in_front = |it: &Contender<'_>| {
        it.sequence < me.sequence && !(me.kind.is_shared() && it.kind.is_shared())
    };
    let count = contenders().filter(in_front).count();
    match contenders().filter(in_front).max_by_key(|it| it.sequence) {
        None => Standing::First,
        Some(last) => Standing::Behind(Ahead {
            predecessor: last.name,
            count,
            // A writer that downgrades leaves a reader with its own number behind.
            decides: count == 1 && last.kind != Kind::Write,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behind(predecessor: &str, count: usize, decides: bool) -> Standing<'_> {
        Standing::Behind(Ahead {
            predecessor,
            count,
            decides,
        })
    }

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn the_lowest_number_is_first_whatever_the_list_order() {
        let all = list(&[
            "z-lock-0000000009",
            "junk",
            "a-lock-0000000010",
            "b__lock__0000000008",
        ]);
        assert_eq!(standing(&all, "b__lock__0000000008"), Standing::First);
        assert_eq!(
            standing(&all, "z-lock-0000000009"),
            behind("b__lock__0000000008", 1, true)
        );
        assert_eq!(
            standing(&all, "a-lock-0000000010"),
            behind("z-lock-0000000009", 2, false)
        );
        assert_eq!(standing(&all, "c-lock-0000000010"), Standing::Gone);
    }

    #[test]
    fn readers_pass_readers_and_nobody_else() {
        let all = list(&[
            "r__READ__0000000001",
            "s__rlock__0000000002",
            "t__READ__0000000003",
            "w__WRIT__0000000004",
            "u__READ__0000000005",
            "x-lock-0000000006",
        ]);
        assert_eq!(standing(&all, "t__READ__0000000003"), Standing::First);
        assert_eq!(
            standing(&all, "u__READ__0000000005"),
            behind("w__WRIT__0000000004", 1, false)
        );
        assert_eq!(
            standing(&all, "x-lock-0000000006"),
            behind("u__READ__0000000005", 5, false)
        );
    }

    #[test]
    fn numbers_without_an_order_admit_nobody() {
        for names in [
            ["a-lock-2147483647", "b-lock-0000000001"],
            ["a-lock-0000000007", "b-lock-0000000007"],
            ["a-lock-0000000007", "b-lock--2147483648"],
            ["a-lock--147483648", "b-lock-0000000001"],
        ] {
            assert_eq!(
                standing(&list(&names), names[0]),
                Standing::Exhausted,
                "{names:?}"
            );
        }
    }

    #[test]
    fn a_downgraded_writer_ties_only_with_itself() {
        let all = list(&[
            "a__WRIT__0000000007",
            "a__READ__0000000007",
            "b-lock-0000000008",
        ]);
        assert_eq!(
            standing(&all, "b-lock-0000000008"),
            behind("a__READ__0000000007", 2, false)
        );
    }

    /// Of any set of contenders at most one exclusive one is admitted, and nobody beside it.
    #[test]
    fn never_two_holders() {
        let kinds = ["x-lock-", "x__READ__", "x__WRIT__", "x__lock__"];
        let numbers = ["0000000001", "0000000002", "0000000003"];
        for pick in 0..4_usize.pow(3) {
            let names: Vec<String> = (0..3_u32)
                .map(|i| {
                    let kind = kinds[pick / 4_usize.pow(i) % 4];
                    format!("{kind}{}", numbers[i as usize])
                })
                .collect();
            let first: Vec<_> = names
                .iter()
                .filter(|name| standing(&names, name) == Standing::First)
                .collect();
            let shared = first
                .iter()
                .filter(|name| name.contains("__READ__"))
                .count();
            assert!(shared == first.len() || first.len() == 1, "{names:?}");
            assert!(!first.is_empty(), "{names:?}");
        }
    }
}
