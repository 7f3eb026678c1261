//! What the handlers share.

use std::sync::Arc;

use mcp_channel::subscriptions::Subscriptions;

use crate::seal::Seal;
use crate::stats::Stats;
use crate::tools::Tools;

/// The application. Cloning gives another handle to the same one.
#[derive(Clone)]
pub struct App {
    pub stats: Arc<Stats>,
    pub subscriptions: Subscriptions,
    pub seal: Arc<Seal>,
    pub tools: Arc<Tools>,
}

impl App {
    pub fn new(seal: Seal) -> Self {
        Self {
            stats: Arc::default(),
            subscriptions: Subscriptions::new(),
            seal: Arc::new(seal),
            tools: Arc::new(Tools::new()),
        }
    }
}
