"""Where people work: each module is for one other tool, and nothing else imports it."""
