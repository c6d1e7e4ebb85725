/** Twenty seconds of the whole agent in simulated time. */
import { test } from 'vitest';
import { runFor } from '../many.ts';

test('the agent holds its promises for twenty seconds, whatever happens', { timeout: 600_000 }, () => runFor(20));
