// Loaded into the agent by a test (NODE_OPTIONS=--import): once the file of $HANG_FILE exists, no timer set by
// setTimeout calls back any more. The event loop goes on; the scheduler does not.
import fs from 'node:fs';

const file = process.env.HANG_FILE;
const setTimeoutAsItWas = globalThis.setTimeout;
globalThis.setTimeout = (callback, delayMs, ...args) =>
  setTimeoutAsItWas(
    (...given) => {
      if (!fs.existsSync(file)) callback(...given);
    },
    delayMs,
    ...args,
  );
