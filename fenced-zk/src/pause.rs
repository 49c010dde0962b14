use std::time::Duration;

use tokio::time::sleep;

/// Ever longer pauses between tries; the first two come at once.
#[derive(Default)]
pub(crate) struct Pause {
    tries: u32,
}

impl Pause {
    const LONGEST: Duration = Duration::from_secs(1);

    pub(crate) async fn take(&mut self) {
        self.tries += 1;
        if let Some(doublings) = self.tries.checked_sub(3) {
            let pause = Duration::from_millis(5 << doublings.min(8));
            sleep(pause.min(Self::LONGEST)).await;
        }
    }
}
