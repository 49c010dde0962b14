//! The directories above contenders: containers, which the server removes once they are empty.

use zookeeper_client::{CreateMode, Error};

use crate::session::Session;

pub(crate) async fn create(session: &Session, directory: &str) -> Result<(), Error> {
    match make(session, directory, CreateMode::Container).await {
        // Servers before 3.5 have no containers.
        Err(Error::Unimplemented) => make(session, directory, CreateMode::Persistent).await,
        made => made,
    }
}

async fn make(session: &Session, directory: &str, mode: CreateMode) -> Result<(), Error> {
    let options = session.settings.create(mode);
    session.client.mkdir(directory, &options).await
}
