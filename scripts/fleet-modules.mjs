// For the Node.js of .fleet/ (setup-fleet.mjs), before the program: the SQLite module that is built for it.
import { registerHooks } from 'node:module';

const parentURL = new URL('../.fleet/package.json', import.meta.url).href;

registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier, specifier.startsWith('better-sqlite3') ? { ...context, parentURL } : context),
});
