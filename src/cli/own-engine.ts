/** The state and the engine of an agent in the process of one command. */

import type { Config } from '../config/config.ts';
import { buildEngine, type Engine } from '../daemon/compose.ts';
import { type Connection, connect } from '../daemon/connection.ts';
import { type OwnedStore, openOwnStore } from '../daemon/own-state.ts';
import type { JobId } from '../job.ts';
import type { ResultSyncRow } from '../store/rows.ts';
import { commandLog } from './process.ts';

interface OwnEngineOptions {
  readonly config: Config;
  /** Follow these jobs only. */
  readonly only?: ReadonlySet<JobId>;
  readonly onProgress?: (progress: ResultSyncRow) => void;
  readonly owned: OwnedStore;
  readonly signsInAgain?: boolean;
  readonly signal: AbortSignal;
}

/** @throws JobtailError locked while an agent runs */
export async function withOwnState<T>(config: Config, work: (owned: OwnedStore) => Promise<T>): Promise<T> {
  const owned = openOwnStore(config, commandLog());
  try {
    return await work(owned);
  } finally {
    owned.close();
  }
}

/** Ends the temporary keys of a state without an engine. */
export async function endGrants(config: Config, { store, transfers }: OwnedStore, signal: AbortSignal): Promise<void> {
  const connection = await connect(config, commandLog(), { capabilities: store.capabilities });
  await transfers.endAll(connection.remote, signal).finally(() => connection.close());
}

/** Runs `work` with an engine; afterwards, its temporary keys and its connection are ended. */
export async function withEngine<T>(
  { owned: { store, transfers }, signsInAgain = false, signal, ...options }: OwnEngineOptions,
  work: (engine: Engine & { readonly connection: Connection }) => Promise<T>,
): Promise<T> {
  const log = commandLog();
  const { secrets } = transfers;
  const connection = await connect(options.config, log, { secrets, capabilities: store.capabilities, signsInAgain });
  try {
    return await work({ ...buildEngine({ ...options, ...connection, store, transfers, log }), connection });
  } finally {
    await transfers.endAll(connection.remote, signal);
    await connection.close();
  }
}
