/** The configuration a command was given. */

import type { Config } from '../config/config.ts';
import { findConfig } from '../config/find.ts';
import { loadConfig } from '../config/load.ts';

export interface ConfigOption {
  readonly config?: string;
}

export function configurationOf({ config }: ConfigOption): Promise<Config> {
  return loadConfig(findConfig(config, process.env, process.cwd()));
}
