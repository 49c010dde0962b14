use fenced_core::{Fence, FencingToken, Mode, SinkError};

/// The newest tokens of a resource: of those who exclude everybody, and of those who exclude only
/// these. 0: none yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) exclusive: i64,
    pub(crate) shared: i64,
}

/// How a holder stands to what was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The fence is raised to its token.
    Raised,
    /// The fence has to be raised.
    Newer,
}

impl Seen {
    pub(crate) fn newest(self) -> i64 {
        self.exclusive.max(self.shared)
    }

    /// `floor` stands in for what was collected.
    pub(crate) fn compare(self, fence: &Fence, floor: i64) -> Result<Standing, SinkError> {
        let mine = fence.token.get();
        let raised = match fence.mode {
            Mode::Shared => self.shared,
            _ => self.exclusive,
        };
        if mine < self.against(fence.mode) || (self.newest() == 0 && mine < floor) {
            Err(stale(fence, self.newest().max(floor)))
        } else if raised >= mine {
            Ok(Standing::Raised)
        } else {
            Ok(Standing::Newer)
        }
    }

    /// Whether a newer holder has claimed.
    pub(crate) fn has_passed(self, fence: &Fence) -> bool {
        fence.token.get() < self.against(fence.mode)
    }

    pub(crate) fn raise(&mut self, mode: Mode, token: FencingToken) {
        let raised = match mode {
            Mode::Shared => &mut self.shared,
            _ => &mut self.exclusive,
        };
        *raised = (*raised).max(token.get());
    }

    /// What makes a holder of this mode stale: readers do not fence each other.
    fn against(self, mode: Mode) -> i64 {
        match mode {
            Mode::Shared => self.exclusive,
            _ => self.newest(),
        }
    }
}

fn stale(fence: &Fence, current: i64) -> SinkError {
    SinkError::Stale {
        mine: fence.token,
        current: FencingToken::try_from(current).unwrap_or(fence.token),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fence(token: i64, mode: Mode) -> Fence {
        let mut fence = Fence::new("/r", FencingToken::try_from(token).unwrap());
        fence.mode = mode;
        fence
    }

    #[test]
    fn readers_do_not_fence_each_other() {
        let seen = Seen {
            exclusive: 5,
            shared: 9,
        };
        let of = |token, mode| seen.compare(&fence(token, mode), 0).ok();
        assert_eq!(of(8, Mode::Shared), Some(Standing::Raised));
        assert_eq!(of(9, Mode::Shared), Some(Standing::Raised));
        assert_eq!(of(10, Mode::Shared), Some(Standing::Newer));
        assert_eq!(of(4, Mode::Shared), None);
        assert_eq!(of(8, Mode::Exclusive), None);
        assert_eq!(of(10, Mode::Exclusive), Some(Standing::Newer));
        assert!(!seen.has_passed(&fence(8, Mode::Shared)));
        assert!(seen.has_passed(&fence(8, Mode::Exclusive)));
    }

    #[test]
    fn the_floor_stands_in_for_what_was_collected() {
        let of = |seen: Seen, token| seen.compare(&fence(token, Mode::Exclusive), 10).ok();
        assert_eq!(of(Seen::default(), 9), None);
        assert_eq!(of(Seen::default(), 10), Some(Standing::Newer));
        let kept = Seen {
            exclusive: 9,
            shared: 0,
        };
        assert_eq!(of(kept, 9), Some(Standing::Raised));
    }
}
