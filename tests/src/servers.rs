//! One server of each kind, for a whole run.

use std::io;
use std::thread;
use std::{env, panic};

use crate::shared::{POSTGRES, REDIS, ZOOKEEPER};
use crate::{Postgres, Redis, ZooKeeper};

/// The servers of a run; dropping it ends them.
#[derive(Debug)]
pub(crate) struct Servers {
    zookeeper: Option<ZooKeeper>,
    postgres: Option<Postgres>,
    redis: Option<Redis>,
}

impl Servers {
    /// Starts one of each kind.
    pub(crate) fn start() -> io::Result<Self> {
        Self::start_where(|_| true)
    }

    /// Starts those whose variable is not set.
    pub(crate) fn start_missing() -> io::Result<Self> {
        Self::start_where(|variable| env::var_os(variable).is_none())
    }

    fn start_where(wanted: impl Fn(&str) -> bool) -> io::Result<Self> {
        thread::scope(|scope| {
            let zookeeper = wanted(ZOOKEEPER).then(|| scope.spawn(ZooKeeper::start));
            let postgres = wanted(POSTGRES).then(|| scope.spawn(Postgres::start));
            let redis = wanted(REDIS).then(Redis::start).transpose()?;
            Ok(Self {
                zookeeper: zookeeper.map(joined).transpose()?,
                postgres: postgres.map(joined).transpose()?,
                redis,
            })
        })
    }

    /// The variables by which the tests find the servers started here.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, String)> {
        let zookeeper = self
            .zookeeper
            .as_ref()
            .map(|server| (ZOOKEEPER, server.address()));
        let postgres = self
            .postgres
            .as_ref()
            .map(|server| (POSTGRES, server.url()));
        let redis = self.redis.as_ref().map(|server| (REDIS, server.url()));
        [zookeeper, postgres, redis].into_iter().flatten()
    }
}

fn joined<T>(starting: thread::ScopedJoinHandle<'_, io::Result<T>>) -> io::Result<T> {
    starting
        .join()
        .unwrap_or_else(|panicked| panic::resume_unwind(panicked))
}
