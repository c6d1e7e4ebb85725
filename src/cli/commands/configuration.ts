/** The configuration a command was given. */
import type { Config } from '../../config/config.ts';
import { findConfig, loadConfig } from '../../config/load.ts';
import { printable } from '../../printable.ts';
import { becomeOwnerOf } from '../state-owner.ts';

export interface ConfigOption {
  readonly config?: string;
  /** The command line that runs this command again as another user; the one of this process if left out. */
  readonly commandLine?: readonly string[];
}

export function configurationOf({ config }: ConfigOption): Promise<Config> {
  const onIgnored = (message: string) => void process.stderr.write(`agent: ${printable(message)}\n`);
  return loadConfig(findConfig({ explicit: config, env: process.env, cwd: process.cwd(), onIgnored }));
}

/** The configuration, for commands beside the agent: from then on they run as the user who owns its state. */
export async function configurationAsOwner(options: ConfigOption): Promise<Config> {
  const config = await configurationOf(options);
  await becomeOwnerOf(config.state.directory, options.commandLine ?? process.argv.slice(2));
  return config;
}
