/** The engine of an agent in the process of one command. */
import { buildEngine, type Engine, type EngineOptions } from '../daemon/compose.ts';
import { type Connection, connect } from '../daemon/connection.ts';
import type { OwnedStore } from '../daemon/state.ts';
import { commandLog } from './process.ts';

interface OwnEngine extends Engine {
  readonly connection: Connection;
}

interface OwnEngineOptions extends Pick<EngineOptions, 'config' | 'only' | 'onProgress'> {
  readonly owned: OwnedStore;
  readonly signsInAgain?: boolean;
  readonly signal: AbortSignal;
}

/** Runs `work` with an engine; afterwards, its temporary keys and its connection are ended. */
export async function withEngine<T>(
  { owned: { store, transfers }, signsInAgain = false, signal, ...options }: OwnEngineOptions,
  work: (engine: OwnEngine) => Promise<T>,
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
