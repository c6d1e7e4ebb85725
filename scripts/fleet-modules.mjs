// For the Node.js of .fleet/ (setup-fleet.mjs), before the program: the SQLite module that is built for it.
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';

const parentURL = new URL('../.fleet/package.json', import.meta.url).href;
const modules = fileURLToPath(new URL('../.fleet/node_modules/', import.meta.url));

registerHooks({
  resolve(specifier, context, next) {
    // The bundled code requires the native module, whose parent no hook changes.
    if (specifier.startsWith('better-sqlite3/')) return next(`${modules}${specifier}`, context);
    return next(specifier, specifier === 'better-sqlite3' ? { ...context, parentURL } : context);
  },
});
