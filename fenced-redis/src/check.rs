use fenced_core::BoxError;
use redis::{RedisError, Value};

use crate::refusal::Refused;
use crate::sink::{Connection, RedisSink};

/// Why a server is not fit for a [`RedisSink`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// It may drop what has to stay when its memory is full.
    #[error(
        "the server's `maxmemory-policy` is `{policy}`, which can drop {what}: set it to `noeviction`, or ask the sink only to warn of it"
    )]
    #[non_exhaustive]
    Evicts {
        /// The policy.
        policy: String,
        /// What can get lost.
        what: &'static str,
    },
    /// It is part of a cluster, and the keys of the sink have no tag.
    #[error("the server is part of a cluster: give the sink a `tag` or `tag_by`")]
    Cluster,
    /// It follows another server, and cannot be written to.
    #[error("the server is a replica: connect to its master")]
    Replica,
    /// It does not say how it is set up.
    #[error(
        "the server does not say what its `maxmemory-policy` is: allow this user `INFO` or `CONFIG GET`, or ask the sink only to warn of it"
    )]
    Secretive,
    /// It cannot be asked.
    #[error("the server cannot be asked: {0}")]
    Failed(#[source] BoxError),
}

/// What a server tells of itself.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    policy: Option<String>,
    cluster: bool,
    replica: bool,
    forgetful: bool,
}

impl<C: Connection> RedisSink<C> {
    /// A sink without options, for a server that was [checked](Self::check).
    ///
    /// # Errors
    /// A [`CheckError`].
    pub async fn connect(connection: C) -> Result<Self, CheckError> {
        let sink = Self::new(connection);
        sink.check().await?;
        Ok(sink)
    }

    /// Refuses a server, or a cluster with a server, that would not keep fences and requests;
    /// warns of one that keeps nothing over a restart. To be called at every start.
    ///
    /// It needs the permission for `INFO` or `CONFIG GET`.
    ///
    /// # Errors
    /// A [`CheckError`].
    pub async fn check(&self) -> Result<(), CheckError> {
        let mut servers = self.told_by_info().await?;
        if servers.iter().all(|told| told.policy.is_none()) {
            servers.extend(self.told_by_config().await?);
        }
        if servers.iter().all(|told| told.policy.is_none()) {
            self.refuse_or_warn(CheckError::Secretive)?;
        }
        servers.iter().try_for_each(|told| self.judge(told))
    }

    fn judge(&self, told: &Told) -> Result<(), CheckError> {
        if told.cluster && self.tags.are_missing() {
            return Err(CheckError::Cluster);
        }
        if told.replica && !told.cluster {
            return Err(CheckError::Replica);
        }
        if told.forgetful {
            tracing::warn!("the server keeps nothing over a restart: `appendonly yes` would");
        }
        match told.policy.as_deref() {
            Some("noeviction") | None => Ok(()),
            Some(policy) => {
                let what = if policy.starts_with("volatile") {
                    "requests before they expire, so that a repetition has a second effect"
                } else {
                    "fences, so that an older holder is let in again"
                };
                let policy = policy.to_owned();
                self.refuse_or_warn(CheckError::Evicts { policy, what })
            }
        }
    }

    fn refuse_or_warn(&self, error: CheckError) -> Result<(), CheckError> {
        if self.eviction_is_fatal {
            return Err(error);
        }
        tracing::warn!("{error}");
        Ok(())
    }

    async fn told_by_info(&self) -> Result<Vec<Told>, CheckError> {
        let answer = self.answer(redis::cmd("INFO").arg("all")).await;
        Ok(texts(allowed(answer)?)
            .iter()
            .map(|info| told(info))
            .collect())
    }

    async fn told_by_config(&self) -> Result<Vec<Told>, CheckError> {
        let mut command = redis::cmd("CONFIG");
        command.arg("GET").arg("maxmemory-policy");
        let answer = texts(allowed(self.answer(&command).await)?);
        let policies = answer.iter().filter(|text| is_policy(text));
        let told = policies.map(|policy| Told {
            policy: Some(policy.clone()),
            ..Told::default()
        });
        Ok(told.collect())
    }
}

/// The answer, or nothing if the server refuses the question.
fn allowed(answer: Result<Value, Refused>) -> Result<Value, CheckError> {
    match answer {
        Ok(value) => Ok(value),
        Err(Refused::Failed(error)) if is_refusal(&error) => Ok(Value::Nil),
        Err(Refused::Failed(error)) => Err(CheckError::Failed(error.into())),
        Err(Refused::Silent(silent)) => Err(CheckError::Failed(silent.into())),
    }
}

/// Where a command is renamed away, it is unknown.
fn is_refusal(error: &RedisError) -> bool {
    matches!(error.code(), Some("NOPERM" | "ERR"))
}

/// Every text in an answer: a cluster answers with one for each of its servers.
fn texts(value: Value) -> Vec<String> {
    match value {
        Value::BulkString(bytes) => vec![String::from_utf8_lossy(&bytes).into_owned()],
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => vec![text],
        Value::Array(values) => values.into_iter().flat_map(texts).collect(),
        Value::Map(pairs) => pairs
            .into_iter()
            .flat_map(|(_, value)| texts(value))
            .collect(),
        _ => Vec::new(),
    }
}

fn is_policy(text: &str) -> bool {
    text == "noeviction" || text.starts_with("allkeys-") || text.starts_with("volatile-")
}

fn told(info: &str) -> Told {
    let value = |name: &str| {
        let lines = info.lines().map(str::trim);
        let mut pairs = lines.filter_map(|line| line.split_once(':'));
        pairs.find_map(|(key, value)| (key == name).then_some(value))
    };
    Told {
        policy: value("maxmemory_policy").map(str::to_owned),
        cluster: value("cluster_enabled") == Some("1"),
        replica: value("role") == Some("slave"),
        forgetful: value("aof_enabled") == Some("0"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_tells_is_read() {
        let info = "# Server\r\nredis_mode:standalone\r\n# Memory\r\nmaxmemory_policy:allkeys-lru\r\n\
            # Persistence\r\naof_enabled:0\r\n# Replication\r\nrole:slave\r\ncluster_enabled:1\r\n";
        let all = Told {
            policy: Some("allkeys-lru".to_owned()),
            cluster: true,
            replica: true,
            forgetful: true,
        };
        assert_eq!(told(info), all);
        assert_eq!(told(""), Told::default());
    }

    #[test]
    fn a_cluster_answers_for_each_of_its_servers() {
        let bulk = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let map = Value::Map(vec![
            (bulk("a:1"), bulk("one")),
            (bulk("b:2"), Value::Array(vec![bulk("two")])),
        ]);
        assert_eq!(texts(map), ["one", "two"]);
    }
}
