// For the Node.js of .fleet/ (setup-fleet.mjs), before the program: packages that are there for it.
import { registerHooks } from 'node:module';

const THERE = ['better-sqlite3', 'pg'];
const parentURL = new URL('../.fleet/package.json', import.meta.url).href;

registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier, THERE.includes(specifier) ? { ...context, parentURL } : context),
});
