/** The page: what it shows is behind `#` in its address, what it shows it of comes from `api/` beside it. */
import { render } from 'preact';
import { App } from './app.tsx';
import { Live, ProvideLive } from './live.ts';
import { startTheme } from './parts/theme.ts';

startTheme();
const live = new Live();
live.start();
render(
  <ProvideLive value={live}>
    <App />
  </ProvideLive>,
  document.getElementById('page') as HTMLElement,
);
