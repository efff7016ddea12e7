"""Handles the cyclic garbage that a collection finds, and breaks its cycles."""
