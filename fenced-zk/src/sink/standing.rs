use fenced_core::{Fence, FencingToken, Mode, SinkError};

/// The newest tokens that a resource has seen: zero where there was none. Readers do not fence one
/// another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    exclusive: i64,
    shared: i64,
}

impl Standing {
    pub(super) fn parse(node: &str, data: &[u8]) -> Result<Self, SinkError> {
        let text = std::str::from_utf8(data).unwrap_or_default();
        let numbers = text
            .split_once(' ')
            .map(|(exclusive, shared)| (exclusive.parse(), shared.parse()));
        match numbers {
            Some((Ok(exclusive), Ok(shared))) if exclusive >= 0 && shared >= 0 => {
                Ok(Self { exclusive, shared })
            }
            _ => Err(SinkError::backend(format!(
                "`{node}` holds no fence, so that nothing is written: put back `EXCLUSIVE SHARED`, the newest tokens that were seen"
            ))),
        }
    }

    pub(super) fn text(self) -> String {
        format!("{} {}", self.exclusive, self.shared)
    }

    /// What it becomes, if it changes.
    ///
    /// # Errors
    /// [`SinkError::Stale`]; [`SinkError::NotClaimed`] if the holder has raised it before, and it
    /// has been lost since.
    pub(super) fn raised(self, fence: &Fence) -> Result<Option<Self>, SinkError> {
        let mine = fence.token;
        if let Some(current) = self.against(fence.mode).filter(|current| *current > mine) {
            return Err(SinkError::Stale { mine, current });
        }
        let mut raised = self;
        let own = match fence.mode {
            Mode::Shared => &mut raised.shared,
            _ => &mut raised.exclusive,
        };
        if *own >= mine.get() {
            return Ok(None);
        }
        if fence.claimed {
            let resource = fence.resource.clone();
            return Err(SinkError::NotClaimed { resource });
        }
        *own = mine.get();
        Ok(Some(raised))
    }

    /// The newest token of those who make a holder of this kind stale.
    pub(super) fn against(self, mode: Mode) -> Option<FencingToken> {
        let newest = match mode {
            Mode::Shared => self.exclusive,
            _ => self.exclusive.max(self.shared),
        };
        FencingToken::try_from(newest).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_fence_admits_nobody() {
        let read = |text: &str| Standing::parse("/f", text.as_bytes());
        assert_eq!(read("33 0").expect("a fence").text(), "33 0");
        for bad in [
            "",
            "33",
            "33 ",
            "-1 0",
            "33 x",
            "9223372036854775808 0",
            "1 2 3",
        ] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
        assert!(Standing::parse("/f", b"\xff 0").is_err());
    }
}
