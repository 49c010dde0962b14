use zookeeper_client::{CreateOptions, Error, MultiWriter};

use super::standing::Standing;

/// Whatever the version is.
pub(super) const ANY: i32 = -1;

/// What was found, and is to be so still when the transaction is carried out.
pub(super) struct Found {
    pub(super) fence: (String, Option<i32>),
    /// What the fence becomes, if it changes.
    pub(super) raised: Option<Standing>,
    /// The versions of the nodes that are there.
    pub(super) nodes: Vec<(String, Option<i32>)>,
    /// What they are to hold; none if they are to go.
    pub(super) data: Vec<Option<Vec<u8>>>,
}

impl Found {
    /// The versions of the nodes afterwards.
    pub(super) fn versions(&self) -> Vec<i32> {
        let nodes = self.nodes.iter().zip(&self.data);
        nodes
            .map(|((_, version), data)| match data {
                Some(_) => version.map_or(0, |version| version.wrapping_add(1)),
                None => -1,
            })
            .collect()
    }

    pub(super) fn add_to(
        &self,
        multi: &mut MultiWriter<'_>,
        lasting: &CreateOptions<'_>,
    ) -> Result<(), Error> {
        let (fence, version) = &self.fence;
        match (self.raised.map(Standing::text), version) {
            (Some(raised), None) => multi.add_create(fence, raised.as_bytes(), lasting)?,
            (Some(raised), version) => multi.add_set_data(fence, raised.as_bytes(), *version)?,
            (None, version) => multi.add_check_version(fence, version.unwrap_or(ANY))?,
        }
        for ((node, version), data) in self.nodes.iter().zip(&self.data) {
            match (data, version) {
                (Some(data), None) => multi.add_create(node, data, lasting)?,
                (Some(data), version) => multi.add_set_data(node, data, *version)?,
                (None, Some(_)) => multi.add_delete(node, *version)?,
                (None, None) => {}
            }
        }
        Ok(())
    }
}
