//! The names of contenders' nodes: Curator's, and whatever else counts in a lock's directory.

use uuid::Uuid;

/// What a node stands for in the queue of its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Curator's `InterProcessMutex`, and ours.
    Lock,
    /// Curator's `LeaderLatch`.
    Latch,
    /// Kazoo's `Lock` and `WriteLock`.
    KazooLock,
    /// Kazoo's `ReadLock`.
    KazooShared,
    /// A reader of Curator's `InterProcessReadWriteLock`, and our shared mode.
    Read,
    /// A writer of Curator's `InterProcessReadWriteLock`.
    Write,
}

impl Kind {
    const ALL: [Self; 6] = [
        Self::Lock,
        Self::Latch,
        Self::KazooLock,
        Self::KazooShared,
        Self::Read,
        Self::Write,
    ];

    /// What stands in front of the sequence number.
    fn marker(self) -> &'static str {
        match self {
            Self::Lock => "lock-",
            Self::Latch => "latch-",
            Self::KazooLock => "__lock__",
            Self::KazooShared => "__rlock__",
            Self::Read => "__READ__",
            Self::Write => "__WRIT__",
        }
    }

    /// Whether it admits other shared contenders beside it.
    pub(crate) fn is_shared(self) -> bool {
        matches!(self, Self::KazooShared | Self::Read)
    }
}

/// One place in a queue, read from a node's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contender<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: Kind,
    pub(crate) sequence: i64,
}

impl<'a> Contender<'a> {
    /// `None` if the node is no contender of a recipe we know.
    pub(crate) fn parse(name: &'a str) -> Option<Self> {
        let bare = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = name.len() - bare.len();
        let kind_of = |bare: &str| Kind::ALL.into_iter().find(|k| bare.ends_with(k.marker()));
        // A counter that has run over is printed with its sign, padded to ten characters.
        let negative = bare
            .strip_suffix('-')
            .filter(|_| matches!(digits, 9 | 10))
            .and_then(|bare| Some((kind_of(bare)?, bare.len())));
        let (kind, number) = match (digits, kind_of(bare)) {
            (10, Some(kind)) => (kind, bare.len()),
            _ => negative?,
        };
        let sequence = name[number..].parse().ok()?;
        Some(Self {
            name,
            kind,
            sequence,
        })
    }
}

/// The name of a node up to its sequence number: the server adds that.
pub(crate) fn prefix(id: Uuid, shared: bool) -> String {
    if shared {
        format!("_c_{id}-{}", Kind::Read.marker())
    } else {
        format!("_c_{id}-{}", Kind::Lock.marker())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(name: &str) -> Option<(Kind, i64)> {
        Contender::parse(name).map(|it| (it.kind, it.sequence))
    }

    #[test]
    fn reads_the_names_of_every_peer() {
        let id = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
        for (name, kind, sequence) in [
            (format!("_c_{id}-lock-0000000007"), Kind::Lock, 7),
            (format!("_c_{id}-latch-0000000008"), Kind::Latch, 8),
            (format!("_c_{id}-__READ__0000000009"), Kind::Read, 9),
            (format!("_c_{id}-__WRIT__0000000010"), Kind::Write, 10),
            ("ab12__lock__0000000011".into(), Kind::KazooLock, 11),
            ("ab12__rlock__0000000012".into(), Kind::KazooShared, 12),
            ("lock-2147483647".into(), Kind::Lock, 2_147_483_647),
            ("dead-lock-0000000000".into(), Kind::Lock, 0),
            ("x-lock--2147483648".into(), Kind::Lock, -2_147_483_648),
            ("x-lock--147483648".into(), Kind::Lock, -147_483_648),
        ] {
            assert_eq!(parsed(&name), Some((kind, sequence)), "{name}");
        }
    }

    #[test]
    fn nothing_else_is_a_contender() {
        for name in [
            "",
            "hello",
            "0123456789",
            "lock-",
            "lock-1",
            "lock-00000000012",
            "lock-000000000é",
            "äöü🦀",
            "🦀0000000001",
            "lease-0000000001",
            "lock-٠١٢٣٤٥٦٧٨٩",
            "lock---123456789",
            "lock-0000000001x",
        ] {
            assert_eq!(parsed(name), None, "{name}");
        }
    }

    /// A path that ends like a contender would put a lasting one into its parent's queue.
    #[test]
    fn no_lock_is_called_like_a_contender() {
        let markers = Kind::ALL.map(Kind::marker);
        for marker in markers
            .into_iter()
            .chain(["", "lock", "-", "__READ_", "lease-"])
        {
            for sign in ["", "-", "--"] {
                for digits in 0..12 {
                    let name = format!("x{marker}{sign}{}", &"012345678901"[..digits]);
                    let path = fenced_core::LockPath::new(format!("/locks/{name}"));
                    assert_eq!(path.is_err(), parsed(&name).is_some(), "{name}");
                }
            }
        }
    }

    #[test]
    fn our_own_names_are_curators() {
        let id = Uuid::nil();
        assert_eq!(
            prefix(id, false),
            "_c_00000000-0000-0000-0000-000000000000-lock-"
        );
        assert_eq!(
            parsed(&format!("{}0000000003", prefix(id, true))),
            Some((Kind::Read, 3))
        );
    }
}
