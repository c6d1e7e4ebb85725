/** The configuration a command was given. */
import type { Config } from '../../config/config.ts';
import { findConfig } from '../../config/find.ts';
import { loadConfig } from '../../config/load.ts';
import { becomeOwnerOf } from '../state-owner.ts';

export interface ConfigOption {
  readonly config?: string;
  /** The command line that says the same, where it is not the one of this process. */
  readonly commandLine?: readonly string[];
}

export function configurationOf({ config }: ConfigOption): Promise<Config> {
  return loadConfig(findConfig(config, process.env, process.cwd()));
}

/** The same, for commands beside the agent: from then on as the user who owns its state. */
export async function configurationAsOwner(options: ConfigOption): Promise<Config> {
  const config = await configurationOf(options);
  await becomeOwnerOf(config.state.directory, options.commandLine ?? process.argv.slice(2));
  return config;
}
