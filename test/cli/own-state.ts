/** A configuration for REST, and the state that this process owns as a running agent would. */
import { onTestFinished } from 'vitest';
import { openOwnStore } from '../../src/daemon/own-state.ts';
import { restConfig } from '../config/files.ts';
import { SILENT } from '../support/errors.ts';

export async function ownState(sections: Readonly<Record<string, unknown>> = {}) {
  const { directory, file, config } = await restConfig(sections);
  const { store, close } = openOwnStore(config, SILENT);
  onTestFinished(close);
  return { directory, file, config, store };
}
